import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowFailedException;
import io.temporal.failure.ApplicationFailure;
import java.io.File;
import java.io.IOException;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Checks the example against the published tables, by a real worker. */
class TablesTest {
  private static final ObjectMapper JSON = new ObjectMapper();

  private static JsonNode table(String file) throws IOException {
    return JSON.readTree(new File("../../docs/" + file));
  }

  @TestFactory
  Stream<DynamicTest> makesTheWorkflowId() throws IOException {
    return StreamSupport.stream(table("workflow-id-vectors.json").get("vectors").spliterator(), false)
        .map(row -> DynamicTest.dynamicTest(row.get("workflowId").asText(), () -> {
          String id = FollowUp.workflowId(
              row.get("projectId").asText(), row.get("jobId").asText(), row.get("requestId").asText());
          assertEquals(row.get("workflowId").asText(), id);
        }));
  }

  @TestFactory
  Stream<DynamicTest> isJudgedAsTheTableSays() throws IOException {
    WorkflowClient client = FollowUp.connect();
    JsonNode rows = table("requests.json").get("requests");
    return IntStream.range(0, rows.size()).mapToObj(n -> DynamicTest.dynamicTest(rows.get(n).get("name").asText(), () -> {
      Object request = JSON.convertValue(rows.get(n).get("request"), Object.class);
      var error = assertThrows(
          WorkflowFailedException.class, () -> FollowUp.followUp(client, "requests:java:" + n, request));
      var failure = assertInstanceOf(ApplicationFailure.class, error.getCause());
      JsonNode problem = rows.get(n).get("problem");
      // The requests name a job that isn't there, so that an accepted one sends nothing.
      assertEquals(problem.isNull() ? "JobNotFound" : "InvalidRequest", failure.getType());
      String words = problem.isNull() ? "" : problem.asText() + ": ";
      assertTrue(failure.getOriginalMessage().contains(words), failure.getOriginalMessage());
    }));
  }
}
