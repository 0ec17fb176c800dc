import { AsyncLocalStorage } from 'node:async_hooks';
import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import { msNumberToTs } from '@temporalio/common/lib/time';
import { temporal } from '@temporalio/proto';
import Long from 'long';
import type { Failure, Payload } from './history';
import type { Run } from './run';
import type { TemporalServer } from './server';
import type { Listed } from './visibility';

/** gRPC's codes, as far as they are used. */
const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const FAILED_PRECONDITION = 9;
const UNAVAILABLE = 14;

const { PendingActivityState, WorkflowExecutionStatus, WorkflowIdConflictPolicy, WorkflowIdReusePolicy } =
  temporal.api.enums.v1;
const { UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED: UPDATE_COMPLETED } =
  temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage;

export function grpcError(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details, metadata: { get: () => [] } });
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

type Start = temporal.api.workflowservice.v1.IStartWorkflowExecutionRequest;

/** The deadline of the calls within, by the caller's wall clock. */
const deadlines = new AsyncLocalStorage<number>();

/** How long the server keeps a question for the end of a workflow. */
const LONG_POLL_MS = 20_000;

/** The SDK's own client, on a connection to the simulated server. It has the calls that this project makes. */
export function clientOf(
  server: TemporalServer,
  lossy: Reach,
  options: { readonly namespace: string; readonly identity: string },
): Client {
  const reach: Reach = (method, answer) => bounded(server, lossy, method, answer);
  const attempt = ({ taskToken }: AttemptRequest) => {
    const token = Buffer.from(taskToken).toString();
    return { token, activity: server.activityOf(token) };
  };
  const found = <T>(answer: T | undefined | false): T => {
    if (answer === undefined || answer === false) throw grpcError(NOT_FOUND, 'activity not found');
    return answer;
  };
  const runOf = (execution: Execution | null | undefined): Run => {
    const run = server.find(execution?.workflowId ?? '', execution?.runId);
    if (run === undefined) throw grpcError(NOT_FOUND, 'workflow not found');
    return run;
  };
  const openRunOf = (execution: Execution | null | undefined): Run => {
    const run = runOf(execution);
    if (!run.isOpen) throw grpcError(NOT_FOUND, 'workflow execution already completed');
    return run;
  };
  const workflowService = {
    recordActivityTaskHeartbeat: (request: AttemptRequest) =>
      reach(nameOfHeartbeat(), () => {
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
    describeTaskQueue: () =>
      reach('describeTaskQueue', () => ({
        config: null,
        pollers: server.pollers.map((identity) => ({
          identity,
          lastAccessTime: msNumberToTs(server.clock.now),
        })),
      })),
    describeNamespace: () =>
      reach('describeNamespace', () => {
        const seconds = Long.fromNumber(Math.min(server.retentionMs / 1_000, 1e9));
        return { config: { workflowExecutionRetentionTtl: { seconds } } };
      }),
    describeWorkflowExecution: ({ execution }: { readonly execution?: Execution }) =>
      reach('describe', () => describe(runOf(execution))),
    startWorkflowExecution: (request: Start) => {
      const by = callerOf(options.identity);
      return reach('start', () => start(server, request, by));
    },
    listWorkflowExecutions: ({ query }: { readonly query?: string }) =>
      reach('list', () => {
        const listed = server.visibility.list(query ?? '', (run) => server.knows(run));
        return { executions: listed.map(infoOf), nextPageToken: Buffer.alloc(0) };
      }),
    getWorkflowExecutionHistory: async ({
      execution,
      waitNewEvent,
    }: {
      readonly execution?: Execution;
      readonly waitNewEvent?: boolean;
    }) => {
      const run = await reach('history', () => runOf(execution));
      const until = server.clock.now + LONG_POLL_MS;
      if (!waitNewEvent) return { history: { events: [startedEvent(run)] } };
      while (run.isOpen && server.clock.now < until)
        await new Promise<void>((resolve) => server.clock.after(500, resolve));
      return reach('history', () => ({ history: { events: run.isOpen ? [] : [closeEvent(server, run)] } }));
    },
    signalWorkflowExecution: ({ workflowExecution, signalName }: NamedExecution) =>
      reach('signal', () => {
        openRunOf(workflowExecution).signal(signalName ?? '');
        return {};
      }),
    requestCancelWorkflowExecution: ({ workflowExecution }: NamedExecution) =>
      reach('cancel', () => {
        openRunOf(workflowExecution).requestCancel();
        return {};
      }),
    terminateWorkflowExecution: ({ workflowExecution }: NamedExecution) =>
      reach('terminate', () => {
        openRunOf(workflowExecution).terminate();
        return {};
      }),
    updateWorkflowExecution: async ({
      workflowExecution,
      request,
    }: temporal.api.workflowservice.v1.IUpdateWorkflowExecutionRequest) => {
      const updateId = request?.meta?.updateId ?? '';
      const name = request?.input?.name ?? '';
      const asked = await reach('update', () => {
        const run = openRunOf(workflowExecution);
        return { run, end: run.update({ updateId, name, input: request?.input?.args?.payloads ?? [] }) };
      });
      const end = await inTime(asked.end);
      if (end.kind === 'aborted') {
        const isClosed = end.reason.includes('completed');
        throw grpcError(isClosed ? NOT_FOUND : FAILED_PRECONDITION, end.reason);
      }
      const outcome =
        end.kind === 'answered'
          ? { success: { payloads: end.result ? [end.result] : [] } }
          : { failure: end.failure };
      return {
        updateRef: { workflowExecution: { runId: asked.run.runId } },
        outcome,
        stage: UPDATE_COMPLETED,
      };
    },
  };
  const connection = {
    workflowService,
    plugins: [],
    ensureConnected: () => Promise.resolve(),
    close: () => Promise.resolve(),
    withDeadline: <T>(at: number, call: () => Promise<T>) => deadlines.run(at, call),
    withMetadata: <T>(_: unknown, call: () => Promise<T>) => call(),
    withAbortSignal: <T>(_: unknown, call: () => Promise<T>) => call(),
  };
  return new Client({ connection: connection as never, ...options });
}

interface NamedExecution {
  readonly workflowExecution?: Execution | null;
  readonly signalName?: string;
}

/** A batch keeps its position by a heartbeat, and a send asks for its permission. */
function nameOfHeartbeat(): string {
  return Context.current().info.activityType === 'runItems' ? 'keep' : 'heartbeat';
}

/** The run whose activity makes the call; somebody's name outside of activities. */
function callerOf(identity: string): string {
  try {
    return Context.current().info.workflowExecution?.runId ?? identity;
  } catch {
    return identity;
  }
}

/** Ends a call at its deadline; the server drops what comes later. None is 0, as for the SDK's NativeConnection (1.24). */
async function bounded<T>(server: TemporalServer, reach: Reach, method: string, answer: () => T): Promise<T> {
  const at = deadlines.getStore() ?? 0;
  if (at === 0) return reach(method, answer);
  const until = server.clock.now + at - Date.now();
  return inTime(
    reach(method, () => {
      if (server.clock.now > until) throw outOfTime();
      return answer();
    }),
  );
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const at = deadlines.getStore() ?? 0;
  if (at === 0) return work;
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(outOfTime()), Math.max(0, at - Date.now()));
  });
  work.catch(() => undefined);
  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}

function outOfTime(): Error {
  return grpcError(DEADLINE_EXCEEDED, 'the deadline of the call has passed');
}

function start(server: TemporalServer, request: Start, by: string) {
  const workflowId = request.workflowId ?? '';
  const isLimited =
    request.workflowIdReusePolicy ===
    WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY;
  const isRefused =
    request.workflowIdReusePolicy === WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE;
  const run = server.askForStart({
    workflowId,
    workflowType: request.workflowType?.name ?? '',
    taskQueue: request.taskQueue?.name ?? '',
    input: request.input?.payloads ?? [],
    memo: request.memo?.fields ?? {},
    searchAttributes: request.searchAttributes?.indexedFields ?? {},
    asked: { by, requestId: request.requestId ?? '' },
    usesExisting:
      request.workflowIdConflictPolicy === WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
    reuse: isRefused ? 'reject' : isLimited ? 'after failure' : 'allow',
    // A timer of more than 24 days fires at once; no world lasts so long.
    delayMs: Math.min(1_000 * Number(request.workflowStartDelay?.seconds ?? 0), 2 ** 31 - 1),
  });
  if (run === null) throw grpcError(ALREADY_EXISTS, 'workflow execution already started');
  return { runId: run.runId };
}

/** `CONTINUED_AS_NEW` for `WorkflowExecutionContinuedAsNew`. */
function statusOf(status: Run['status']) {
  const words = status.replace('WorkflowExecution', '').replace(/(?<=.)[A-Z]/g, '_$&');
  return WorkflowExecutionStatus[
    `WORKFLOW_EXECUTION_STATUS_${words.toUpperCase()}` as keyof typeof WorkflowExecutionStatus
  ];
}

function infoOf({ start, status, closedAt, memo, searchAttributes, startedAt }: Listed) {
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
    input: { payloads: [...start.input] },
    continuedExecutionRunId: start.continuedFromRunId ?? '',
    firstExecutionRunId: start.firstRunId,
  };
  return { workflowExecutionStartedEventAttributes };
}

function closeEvent(server: TemporalServer, { runId, status, end: { result, failure } }: Run) {
  switch (status) {
    case 'WorkflowExecutionCompleted':
      return { workflowExecutionCompletedEventAttributes: { result: { payloads: result ? [result] : [] } } };
    case 'WorkflowExecutionFailed':
      return { workflowExecutionFailedEventAttributes: { failure } };
    case 'WorkflowExecutionCanceled':
      return { workflowExecutionCanceledEventAttributes: {} };
    case 'WorkflowExecutionContinuedAsNew': {
      const next = server.runs.find(({ start }) => start.continuedFromRunId === runId);
      const newExecutionRunId = next?.runId ?? '';
      return { workflowExecutionContinuedAsNewEventAttributes: { newExecutionRunId } };
    }
    default:
      return { workflowExecutionTerminatedEventAttributes: {} };
  }
}

function describe(run: Run) {
  const { start, status, closedAt, memo, searchAttributes, events, isReset } = run;
  const listed = { start, status, closedAt, memo, searchAttributes, startedAt: events[0]?.at ?? 0 };
  return {
    workflowExecutionInfo: { ...infoOf(listed), historyLength: Long.fromNumber(events.length) },
    workflowExtendedInfo: isReset ? { lastResetTime: msNumberToTs(listed.startedAt) } : {},
    pendingActivities: [...run.activities.values()].map((activity) => ({
      activityId: String(activity.seq),
      activityType: { name: activity.name },
      state:
        activity.state === 'started'
          ? PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
          : PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED,
      attempt: activity.attempt,
      paused: activity.paused,
      ...(activity.lastFailure === undefined ? {} : { lastFailure: activity.lastFailure }),
      ...(activity.details === undefined ? {} : { heartbeatDetails: { payloads: [...activity.details] } }),
    })),
  };
}
