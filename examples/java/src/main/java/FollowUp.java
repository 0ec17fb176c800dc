import com.fasterxml.jackson.databind.JsonNode;
import io.temporal.api.enums.v1.WorkflowIdConflictPolicy;
import io.temporal.api.enums.v1.WorkflowIdReusePolicy;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowExecutionAlreadyStarted;
import io.temporal.client.WorkflowFailedException;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.WorkflowStub;
import io.temporal.envconfig.ClientConfigProfile;
import io.temporal.failure.ApplicationFailure;
import io.temporal.serviceclient.WorkflowServiceStubs;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Sends one follow-up and prints its pull request: FollowUp PROJECT JOB REQUEST_ID PROMPT */
public final class FollowUp {
  static final String CONFLICT =
      "conflict: the follow-up with this request ID has another prompt; this prompt was not sent";

  static final String UUID = "(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";

  static String workflowId(String projectId, String jobId, String requestId) {
    return Stream.of(projectId, jobId, requestId)
        .map(part -> part.matches(UUID) ? part.toLowerCase(Locale.ROOT) : part)
        .map(part -> URLEncoder.encode(part, StandardCharsets.UTF_8)
            .replace("+", "%20").replace("*", "%2A").replace("%7E", "~"))
        .collect(Collectors.joining(":", "follow-up:", ""));
  }

  static JsonNode followUp(WorkflowClient client, String workflowId, Object request) {
    // The start attaches to a running follow-up. If the follow-up has ended, nothing is sent again.
    WorkflowStub stub = client.newUntypedWorkflowStub("followUp", WorkflowOptions.newBuilder()
        .setWorkflowId(workflowId)
        .setTaskQueue("follow-up")
        .setWorkflowIdConflictPolicy(WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING)
        .setWorkflowIdReusePolicy(WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
        .build());
    try {
      stub.start(new Object[] {request});
    } catch (WorkflowExecutionAlreadyStarted ended) { // Its result can be read.
      stub = client.newUntypedWorkflowStub(workflowId);
    }
    return stub.getResult(JsonNode.class);
  }

  /** Whether the follow-up with this request ID has another prompt. If so, this prompt was not sent. */
  static boolean isConflict(JsonNode receipt, String prompt) throws NoSuchAlgorithmException {
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(prompt.getBytes(StandardCharsets.UTF_8));
    JsonNode sent = receipt.get("promptDigest");
    return !sent.isNull() && !sent.asText().equals(HexFormat.of().formatHex(digest));
  }

  /** Connects using TEMPORAL_* and temporal.toml, and waits up to 30 s. Without this wait, the first call would time out earlier. */
  static WorkflowClient connect() throws IOException {
    ClientConfigProfile profile = ClientConfigProfile.load();
    return WorkflowClient.newInstance(
        WorkflowServiceStubs.newConnectedServiceStubs(
            profile.toWorkflowServiceStubsOptions(), Duration.ofSeconds(30)),
        profile.toWorkflowClientOptions());
  }

  public static void main(String[] args) throws IOException, NoSuchAlgorithmException {
    if (args.length != 4) {
      System.err.println("usage: FollowUp PROJECT JOB REQUEST_ID PROMPT");
      System.exit(1);
    }
    // The demo's sandbox has no stale responses. For your agent service, remove `maxStaleness`.
    var request =
        Map.of("projectId", args[0], "jobId", args[1], "requestId", args[2], "prompt", args[3], "maxStaleness", "2s");
    WorkflowClient client = connect();
    int exitCode = 0;
    try {
      JsonNode job = followUp(client, workflowId(args[0], args[1], args[2]), request);
      if (isConflict(job.get("receipt"), args[3])) {
        System.err.println(CONFLICT);
        exitCode = 1;
      } else {
        System.out.println(job.get("status").asText() + " " + job.get("prLink").asText());
      }
    } catch (WorkflowFailedException error) {
      if (!(error.getCause() instanceof ApplicationFailure failure)) throw error;
      JsonNode receipt = failure.getDetails().get(JsonNode.class).get("receipt");
      String delivery = receipt.at("/delivery/verdict").asText();
      String end = failure.getType() + ", delivery " + delivery + ": " + failure.getOriginalMessage();
      System.err.println(isConflict(receipt, args[3]) ? CONFLICT : end);
      exitCode = 1;
    } finally {
      client.getWorkflowServiceStubs().shutdown();
    }
    System.exit(exitCode);
  }
}
