import { AsyncLocalStorage } from 'node:async_hooks';
import { asyncLocalStorage, Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import { msNumberToTs } from '@temporalio/common/lib/time';
import { temporal } from '@temporalio/proto';
import Long from 'long';
import { fromPayload, toPayload } from './history';
import type { PendingActivity } from './pending-activity';
import type { Run } from './run';
import type { TemporalServer } from './server';
import { COMPLETED } from './updates';
import type { Listed } from './visibility';

/** The gRPC status codes that the simulation uses. */
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const FAILED_PRECONDITION = 9;
export const UNAVAILABLE = 14;

const { PendingActivityState, WorkflowExecutionStatus } = temporal.api.enums.v1;
const { UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED: UPDATE_COMPLETED } =
  temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage;

export function grpcError(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details, metadata: { get: () => [] } });
}

/** Makes a call to the Temporal server. The request and the response take time, and can be lost. */
export type CallServer = <T>(method: string, answer: () => T) => Promise<T>;

type Api = typeof temporal.api.workflowservice.v1.WorkflowService.prototype;
type Request<Method extends keyof Api> = Api[Method] extends (request: infer R, ...rest: never[]) => unknown
  ? R
  : never;

type Execution = temporal.api.common.v1.IWorkflowExecution | null | undefined;

type Answers = { readonly [Method in keyof Api]?: (request: Request<Method>) => Promise<object> };

/** The deadline of the calls in this context, on the caller's wall clock. */
const deadlines = new AsyncLocalStorage<number>();

/** The maximum duration of a request that waits for the end of a workflow. */
const LONG_POLL_MS = 20_000;

/** Creates the SDK's own client with a connection to the simulated server. The connection supports the calls that this project makes. */
export function createClient(
  server: TemporalServer,
  unreliableCall: CallServer,
  options: { readonly namespace: string; readonly identity: string },
): Client {
  /** The server ignores a request that arrives after its deadline. */
  const reach: CallServer = (method, answer) => {
    const until = server.clock.now + deadline() - Date.now();
    return withDeadline(
      unreliableCall(method, () => {
        if (server.clock.now > until) throw deadlineExceededError();
        return answer();
      }),
    );
  };
  const runOf = (execution: Execution): Run => {
    const run = server.find(execution?.workflowId ?? '', execution?.runId);
    if (run === undefined) throw grpcError(NOT_FOUND, 'workflow not found');
    return run;
  };
  const openRunOf = (execution: Execution): Run => {
    const run = runOf(execution);
    if (!run.isOpen) throw grpcError(NOT_FOUND, COMPLETED);
    return run;
  };
  /** Handles a request that has the token of an activity attempt. */
  const onAttempt = <T>(
    method: string,
    { taskToken }: { readonly taskToken?: Uint8Array | null },
    answer: (activity: PendingActivity, token: string) => T | undefined | false,
  ) =>
    reach(method, () => {
      const token = Buffer.from(taskToken ?? []).toString();
      const activity = server.findActivity(token);
      const answered = activity && answer(activity, token);
      if (!answered) throw grpcError(NOT_FOUND, 'activity not found');
      return answered;
    });
  const onOpenRun =
    (method: string, act: (run: Run) => void) =>
    ({ workflowExecution }: Request<'terminateWorkflowExecution'>) =>
      reach(method, () => {
        act(openRunOf(workflowExecution));
        return {};
      });
  const workflowService: Answers = {
    requestCancelWorkflowExecution: onOpenRun('cancel', (run) => run.requestCancel()),
    terminateWorkflowExecution: onOpenRun('terminate', (run) => run.terminate()),
    pauseActivity: ({ execution, id }) =>
      reach('pause', () => {
        const activity = openRunOf(execution).activities.get(Number(id));
        if (activity === undefined) throw grpcError(NOT_FOUND, 'activity not found');
        activity.pause();
        return {};
      }),
    recordActivityTaskHeartbeat: (request) =>
      onAttempt(heartbeatPoint(request), request, (activity, token) =>
        activity.heartbeat(token, request.details?.payloads ?? undefined),
      ),
    respondActivityTaskFailed: (request) =>
      onAttempt('fail', request, (activity, token) => {
        const details = request.lastHeartbeatDetails?.payloads ?? undefined;
        return activity.report(token, { failed: { failure: request.failure ?? null } }, details) && {};
      }),
    describeTaskQueue: () =>
      reach('describeTaskQueue', () => {
        const lastAccessTime = msNumberToTs(server.clock.now);
        return { pollers: server.polling.map(({ name: identity }) => ({ identity, lastAccessTime })) };
      }),
    describeNamespace: () =>
      reach('describeNamespace', () => {
        const seconds = Long.fromNumber(Math.min(server.retentionMs / 1_000, 1e9));
        return { config: { workflowExecutionRetentionTtl: { seconds } } };
      }),
    /** A query waits for the task that is in progress: its response is the state after the latest completed task. */
    queryWorkflow: ({ execution }) =>
      reach('query', () => {
        const { progress } = runOf(execution);
        if (progress === undefined) throw grpcError(UNAVAILABLE, 'no worker has responded to the query');
        return { queryResult: { payloads: [toPayload(progress)] } };
      }),
    describeWorkflowExecution: ({ execution }) => reach('describe', () => describe(runOf(execution))),
    /** The requester is the run whose activity makes the call; outside of activities, it is the client's identity. */
    startWorkflowExecution: (request) => {
      const by = asyncLocalStorage.getStore()?.info.workflowExecution?.runId ?? options.identity;
      return reach('start', () => {
        const run = server.start(request, by);
        if (run === null) throw grpcError(ALREADY_EXISTS, 'workflow execution already started');
        return { runId: run.runId };
      });
    },
    listWorkflowExecutions: ({ query }) =>
      reach('list', () => {
        const listed = server.visibility.list(query ?? '', (run) => server.isRetained(run));
        return { executions: listed.map(executionInfo), nextPageToken: Buffer.alloc(0) };
      }),
    getWorkflowExecutionHistory: async (request) => {
      const run = await reach('history', () => runOf(request.execution));
      if (!request.waitNewEvent) return { history: { events: [startedEvent(run)] } };
      const until = server.clock.now + LONG_POLL_MS;
      while (run.isOpen && server.clock.now < until)
        await new Promise<void>((resolve) => server.clock.after(500, resolve));
      return reach('history', () => ({ history: { events: run.isOpen ? [] : [closeEvent(server, run)] } }));
    },
    updateWorkflowExecution: async ({ workflowExecution, request }) => {
      const updateId = request?.meta?.updateId ?? '';
      const { name, args } = request?.input ?? {};
      const { run, answer } = await reach('update', () => {
        const run = openRunOf(workflowExecution);
        return { run, answer: run.update({ updateId, name: name ?? '', input: args?.payloads ?? [] }) };
      });
      const end = await withDeadline(answer);
      if (end.kind === 'aborted')
        throw grpcError(end.reason === COMPLETED ? NOT_FOUND : FAILED_PRECONDITION, end.reason);
      const outcome =
        end.kind === 'answered'
          ? { success: { payloads: end.result ? [end.result] : [] } }
          : { failure: end.failure };
      return { updateRef: { workflowExecution: { runId: run.runId } }, outcome, stage: UPDATE_COMPLETED };
    },
  };
  const connection = {
    workflowService,
    plugins: [],
    // The SDK's `NativeConnection` (1.24) passes 0 if the call has no deadline.
    withDeadline: <T>(at: number, call: () => Promise<T>) => deadlines.run(at === 0 ? Infinity : at, call),
    withAbortSignal: <T>(_: unknown, call: () => Promise<T>) => call(),
  };
  return new Client({ connection: connection as never, ...options });
}

/**
 * Names the point of a heartbeat call. `board`: a batch stores its board. `permission`: a send requests its permission. `pause check`: a
 * send checks, without details, whether an operator paused it.
 */
function heartbeatPoint({ details }: Request<'recordActivityTaskHeartbeat'>): string {
  if (Context.current().info.activityType === 'runItems') return 'board';
  return fromPayload(details?.payloads?.[0]) === null ? 'pause check' : 'permission';
}

function deadline(): number {
  return deadlines.getStore() ?? Infinity;
}

/** Fails a call at its deadline. */
async function withDeadline<T>(work: Promise<T>): Promise<T> {
  if (deadline() === Infinity) return work;
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(deadlineExceededError()), Math.max(0, deadline() - Date.now()));
  });
  work.catch(() => undefined);
  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}

function deadlineExceededError(): Error {
  return grpcError(DEADLINE_EXCEEDED, 'the deadline of the call has passed');
}

/** Converts a status: `WorkflowExecutionContinuedAsNew` becomes `WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW`. */
function statusOf(status: Run['status']) {
  const words = status.replace('WorkflowExecution', '').replace(/(?<=.)[A-Z]/g, '_$&');
  const name = `WORKFLOW_EXECUTION_STATUS_${words.toUpperCase()}`;
  return WorkflowExecutionStatus[name as keyof typeof WorkflowExecutionStatus];
}

function executionInfo({ start, status, closedAt, memo, searchAttributes, startedAt }: Listed) {
  return {
    execution: { workflowId: start.workflowId, runId: start.runId },
    type: { name: start.workflowType },
    taskQueue: start.taskQueue,
    startTime: msNumberToTs(startedAt),
    executionTime: msNumberToTs(startedAt),
    ...(closedAt === Infinity ? {} : { closeTime: msNumberToTs(closedAt) }),
    historyLength: Long.ZERO,
    status: statusOf(status),
    memo: { fields: memo },
    searchAttributes: { indexedFields: searchAttributes },
    firstRunId: start.firstRunId,
  };
}

function startedEvent({ start }: Run) {
  const workflowExecutionStartedEventAttributes = {
    input: { payloads: start.input },
    continuedExecutionRunId: start.continuedFromRunId ?? '',
    firstExecutionRunId: start.firstRunId,
  };
  return { workflowExecutionStartedEventAttributes };
}

/** Makes the event that closes a run. The name of its attributes depends on its type. */
function closeEvent(server: TemporalServer, { runId, status, end: { result, failure } }: Run) {
  const next = server.runs.find(({ start }) => start.continuedFromRunId === runId);
  const name = `${status.slice(0, 1).toLowerCase()}${status.slice(1)}EventAttributes`;
  return {
    [name]: { result: { payloads: result ? [result] : [] }, failure, newExecutionRunId: next?.runId ?? '' },
  };
}

function describe(run: Run) {
  return {
    workflowExecutionInfo: { ...executionInfo(run), historyLength: Long.fromNumber(run.events.length) },
    workflowExtendedInfo: run.isReset ? { lastResetTime: msNumberToTs(run.startedAt) } : {},
    pendingActivities: [...run.activities.values()].map(
      ({ seq, name, shownState, attempt, paused, lastFailure, details }) => ({
        activityId: String(seq),
        activityType: { name },
        state: PendingActivityState[`PENDING_ACTIVITY_STATE_${shownState}`],
        attempt,
        paused,
        lastFailure,
        heartbeatDetails: details && { payloads: details },
      }),
    ),
  };
}
