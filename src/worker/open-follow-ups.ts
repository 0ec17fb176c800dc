import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import { keywordAttribute, keywordAttributeKey } from '../contract/follow-up-start-options';
import { hasGrpcStatus } from '../temporal/grpc-status';
import { toDate } from '../temporal/proto-field';
import { listFollowUpRuns } from '../temporal/visibility';
import type { OpenFollowUps, OpenRun } from './unchanged-follow-ups';

/** The number of events in one page of a history. Usually, the first page has the last change. */
const EVENTS_PER_PAGE = 200;

const REQUEST_TIMEOUT_MS = 10_000;

/** Creates the reader of a namespace's open follow-ups on the Temporal server. */
export function createOpenFollowUps(connection: NativeConnection, namespace: string): OpenFollowUps {
  const client = new Client({ connection, namespace });
  return {
    async list(phase, until, limit) {
      const restriction = ` AND CloseTime IS NULL AND ExecutionTime <= '${new Date(until).toISOString()}'`;
      const runs: OpenRun[] = [];
      const filters = [keywordAttribute('FollowUpPhase', phase)];
      // The first page of the list has all runs that are needed.
      await client.withDeadline(Date.now() + REQUEST_TIMEOUT_MS, async () => {
        for await (const info of listFollowUpRuns(client, filters, { restriction, pageSize: limit })) {
          const { workflowId, runId, startTime, executionTime, typedSearchAttributes } = info;
          const jobStatus = typedSearchAttributes.get(keywordAttributeKey('AgentJobStatus')) ?? null;
          runs.push({ workflowId, runId, startedAt: Number(executionTime ?? startTime), jobStatus });
          if (runs.length === limit) break;
        }
      });
      return runs;
    },
    async readLastChange(run) {
      const read = () => readLastChangeTime(client, run);
      const at = await client.withDeadline(Date.now() + REQUEST_TIMEOUT_MS, read);
      return at && Math.max(at, run.startedAt);
    },
  };
}

/** Returns when a run last wrote search attributes or, if it has written none, when it started. */
async function readLastChangeTime(
  { workflowService, options: { namespace } }: Client,
  { workflowId, runId }: OpenRun,
): Promise<number | null> {
  let nextPageToken: Uint8Array | undefined;
  do {
    const execution = { workflowId, runId };
    const page = { maximumPageSize: EVENTS_PER_PAGE, ...(nextPageToken && { nextPageToken }) };
    const response = await workflowService
      .getWorkflowExecutionHistoryReverse({ namespace, execution, ...page })
      .catch((error: unknown) => {
        if (hasGrpcStatus(error, 'NOT_FOUND')) return null;
        throw error;
      });
    const change = response?.history?.events?.find(
      (event) =>
        event.upsertWorkflowSearchAttributesEventAttributes ?? event.workflowExecutionStartedEventAttributes,
    );
    if (change) return Number(toDate(change.eventTime));
    nextPageToken = response?.nextPageToken;
  } while (nextPageToken !== undefined && nextPageToken.length > 0);
  return null;
}
