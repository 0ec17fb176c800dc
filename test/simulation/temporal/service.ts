import { Client } from '@temporalio/client';
import { msNumberToTs } from '@temporalio/common/lib/time';
import { temporal } from '@temporalio/proto';
import Long from 'long';
import type { Failure, Payload } from './history';
import type { TemporalServer } from './server';

/** gRPC's codes, as far as they are used. */
const NOT_FOUND = 5;
const UNAVAILABLE = 14;

const { PendingActivityState, WorkflowExecutionStatus } = temporal.api.enums.v1;

export function grpcError(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details, metadata: {} });
}

export function unavailable(): Error {
  return grpcError(UNAVAILABLE, 'the connection to the server was lost');
}

/** How a process reaches the server: its request and the answer take time, and may get lost. */
export type Reach = <T>(method: string, answer: () => T) => Promise<T>;

interface Execution {
  readonly workflowId?: string | null;
  readonly runId?: string | null;
}

/** A request with the token of an attempt. */
interface AttemptRequest {
  readonly taskToken: Uint8Array;
  readonly details?: { readonly payloads?: Payload[] } | null;
  readonly failure?: Failure | null;
  readonly lastHeartbeatDetails?: { readonly payloads?: Payload[] } | null;
}

/** The SDK's own client, on a connection to the simulated server. It has the calls that the activities make. */
export function clientOf(server: TemporalServer, reach: Reach): Client {
  const attempt = ({ taskToken }: AttemptRequest) => {
    const token = Buffer.from(taskToken).toString();
    return { token, activity: server.activityOf(token) };
  };
  const found = <T>(answer: T | undefined | false): T => {
    if (answer === undefined || answer === false) throw grpcError(NOT_FOUND, 'activity not found');
    return answer;
  };
  const workflowService = {
    recordActivityTaskHeartbeat: (request: AttemptRequest) =>
      reach('heartbeat', () => {
        const { token, activity } = attempt(request);
        return found(activity?.heartbeat(token, request.details?.payloads));
      }),
    respondActivityTaskFailed: (request: AttemptRequest) =>
      reach('fail', () => {
        const { token, activity } = attempt(request);
        return found(
          activity?.fail(token, request.failure ?? {}, request.lastHeartbeatDetails?.payloads) && {},
        );
      }),
    describeTaskQueue: () => reach('describeTaskQueue', () => ({ pollers: [], config: null })),
    describeWorkflowExecution: ({ execution }: { readonly execution?: Execution }) =>
      reach('describe', () => describe(server, execution ?? {})),
  };
  const connection = {
    workflowService,
    plugins: [],
    ensureConnected: () => Promise.resolve(),
    close: () => Promise.resolve(),
    withDeadline: <T>(_: unknown, call: () => Promise<T>) => call(),
    withMetadata: <T>(_: unknown, call: () => Promise<T>) => call(),
    withAbortSignal: <T>(_: unknown, call: () => Promise<T>) => call(),
  };
  return new Client({ connection: connection as never });
}

function describe(server: TemporalServer, { workflowId, runId }: Execution) {
  const run = server.runs.find((each) => each.workflowId === workflowId && (!runId || each.runId === runId));
  if (run === undefined) throw grpcError(NOT_FOUND, 'workflow not found');
  const [started] = run.events;
  const status = run.isOpen
    ? WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    : WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED;
  return {
    workflowExecutionInfo: {
      execution: { workflowId: run.workflowId, runId: run.runId },
      type: { name: run.start.workflowType },
      taskQueue: run.start.taskQueue,
      startTime: msNumberToTs(started?.at ?? 0),
      executionTime: msNumberToTs(started?.at ?? 0),
      historyLength: Long.fromNumber(run.events.length),
      status,
      memo: { fields: run.memo },
      searchAttributes: { indexedFields: run.searchAttributes },
    },
    pendingActivities: [...run.activities.values()].map((activity) => ({
      activityId: String(activity.seq),
      activityType: { name: activity.name },
      state:
        activity.state === 'started'
          ? PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
          : PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED,
      attempt: activity.attempt,
      ...(activity.details === undefined ? {} : { heartbeatDetails: { payloads: [...activity.details] } }),
    })),
  };
}
