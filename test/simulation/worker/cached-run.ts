import { TypedSearchAttributes } from '@temporalio/common';
import { msNumberToTs } from '@temporalio/common/lib/time';
import { coresdk, temporal } from '@temporalio/proto';
import type { Workflow } from '@temporalio/worker/lib/workflow/interface';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import Long from 'long';
import type { VirtualClock } from '../clock';
import {
  type Command,
  type Failure,
  type EventBody,
  type HistoryEvent,
  isByCommand,
  type Job,
  pastTasks,
  type Payload,
  type Payloads,
  type Resolution,
  type UpdateRequest,
} from '../temporal/history';
import type { RunStart, ServerCommand } from '../temporal/run';
import { addCommands, type Known } from './commands';
import { seedOf } from './seed';
import type { SinkCall } from './workflow-code';

/** The clock's has another name, by which the sandbox does not know it. */
const RealDate = Date;

/** Runs a local activity of a workflow task. */
export type RunLocally = (seq: number, name: string, input: Payloads) => Promise<Resolution>;

/** A workflow did something else than its history says. */
export class NonDeterminism extends Error {}

/** A workflow task that its code has failed. */
export class TaskFailure extends Error {}

interface Marker {
  readonly seq: number;
  readonly endedAt: number;
  readonly resolution: Resolution;
}

/**
 * A run in the cache of a worker: the workflow in its sandbox, fed with activations. It does what the SDK's core does: makes
 * activations of events, replays a history from its beginning, runs local activities within a task, and resolves at once
 * what is cancelled and not waited for.
 */
export class CachedRun {
  /** Index of the start of the latest task that was applied. */
  private appliedTo = -1;
  /** Activities that have an end for the workflow; a later one of the server says nothing new. */
  private readonly resolved = new Set<number>();
  private readonly known: Known = { activities: new Map(), accepted: new Set() };
  private workflow: Workflow | undefined;
  /** Commands of a replay that are recorded with the next task. */
  private early: ServerCommand[] = [];

  constructor(
    private readonly creator: ReusableVMWorkflowCreator,
    private readonly start: RunStart,
    private readonly clock: Pick<VirtualClock, 'now' | 'during'>,
    private readonly onSink: (call: SinkCall, isReplaying: boolean) => void,
  ) {}

  async dispose(): Promise<void> {
    await this.workflow?.dispose();
    this.workflow = undefined;
  }

  /**
   * Replays what the run has not seen, then carries out the task at the end of the history.
   *
   * @throws NonDeterminism, TaskFailure
   */
  async doTask(
    events: readonly HistoryEvent[],
    updates: readonly UpdateRequest[],
    run: RunLocally,
  ): Promise<ServerCommand[]> {
    await this.replay(events);
    return this.applyTask(events, events.length - 1, updates, { run });
  }

  /** @throws NonDeterminism if a workflow does not do what its history says */
  async replay(events: readonly HistoryEvent[]): Promise<void> {
    for (const { startedAt, completedAt } of pastTasks(events)) {
      if (startedAt <= this.appliedTo) continue;
      const recorded = recordedCommands(events, completedAt);
      const updates = recorded.flatMap((event) =>
        event.type === 'WorkflowExecutionUpdateAccepted' ? [event] : [],
      );
      const markers = recorded.flatMap((event) => (event.type === 'MarkerRecorded' ? [event] : []));
      const commands = await this.applyTask(events, startedAt, updates, { markers });
      if (isForced(events, completedAt, recorded)) this.early = commands.splice(recorded.length);
      compare(this.start.workflowId, startedAt, recorded, commands);
    }
  }

  /** Asks the workflow, as it is. */
  async query(
    name: string,
    input: Payloads,
  ): Promise<{ readonly result?: Payload | null; readonly failure?: Failure | null }> {
    const queryWorkflow = { queryId: 'query', queryType: name, arguments: [...input] };
    // The SDK makes one of whatever it gets, but not of queries.
    const job = coresdk.workflow_activation.WorkflowActivationJob.create({ queryWorkflow });
    const [command] = await this.activate([job], this.clock.now, undefined, true);
    const { succeeded, failed } = command?.respondToQuery ?? {};
    return succeeded ? { result: succeeded.response ?? null } : { failure: failed ?? null };
  }

  private async applyTask(
    events: readonly HistoryEvent[],
    startedAt: number,
    updates: readonly UpdateRequest[],
    local: { readonly run: RunLocally } | { readonly markers: readonly Marker[] },
  ): Promise<ServerCommand[]> {
    const task = events[startedAt];
    if (task?.type !== 'WorkflowTaskStarted')
      throw new Error('a history does not end with the start of a task');
    const isReplay = 'markers' in local;
    const before = this.appliedTo;
    const news = events.slice(before + 1, startedAt);
    this.appliedTo = startedAt;
    const jobs = this.jobsOf(news, updates, !isReplay);
    const done = this.early.splice(0);
    const waiting: { seq: number; end: Promise<Marker> | undefined }[] = [];
    for (let next = { jobs, at: task.at }; ;) {
      const commands = await this.activate(next.jobs, next.at, task, isReplay, events[0], startedAt + 1);
      const instant: Job[] = [];
      const { locals, cancelled } = addCommands(commands, done, this.known);
      for (const seq of cancelled) {
        this.resolved.add(seq);
        const name = this.known.activities.get(seq)?.name ?? '';
        instant.push({ resolveActivity: { seq, result: cancelledAtOnce(seq, name) } });
      }
      for (const { seq, name, input } of locals) {
        const end = isReplay
          ? undefined
          : local.run(seq, name, input).then((resolution) => ({ seq, endedAt: this.clock.now, resolution }));
        waiting.push({ seq, end });
      }
      if (instant.length > 0) {
        next = { jobs: instant, at: next.at };
        continue;
      }
      if (waiting.length === 0) break;
      const marker: Marker | undefined = isReplay
        ? local.markers.find(({ seq }) => waiting.some((each) => each.seq === seq))
        : await Promise.race(waiting.flatMap(({ end }) => (end === undefined ? [] : [end])));
      // In a replay of a task that ended before it.
      if (marker === undefined) break;
      waiting.splice(
        waiting.findIndex(({ seq }) => seq === marker.seq),
        1,
      );
      done.push({ type: 'MarkerRecorded', ...marker });
      const result = isReplay ? asReplayed(marker.resolution) : marker.resolution;
      const job: Job = { resolveActivity: { seq: marker.seq, result, isLocal: true } };
      next = { jobs: [job], at: Math.max(task.at, marker.endedAt) };
    }
    // The server forgets a task that had nothing but updates which were refused.
    if (jobs.every(({ doUpdate }) => doUpdate) && done.every(({ type }) => type === 'UpdateRejected'))
      this.appliedTo = before;
    return done;
  }

  /** What a task tells the workflow, in the order of the SDK's core: signals and updates come before all that ended. */
  private jobsOf(
    news: readonly HistoryEvent[],
    updates: readonly UpdateRequest[],
    runValidator: boolean,
  ): Job[] {
    const first: Job[] = [];
    const calls: Job[] = [];
    const others: Job[] = [];
    for (const event of news) {
      switch (event.type) {
        case 'WorkflowExecutionStarted':
          first.push({ initializeWorkflow: this.initialization(event.at) });
          break;
        case 'WorkflowTaskFailed':
          if (event.seed !== undefined)
            first.push({ updateRandomSeed: { randomnessSeed: seedOf(event.seed) } });
          break;
        case 'WorkflowExecutionSignaled':
          calls.push({
            signalWorkflow: {
              signalName: event.name,
              input: [...event.input],
              identity: 'simulation',
              headers: {},
            },
          });
          break;
        case 'WorkflowExecutionCancelRequested':
          others.push({ cancelWorkflow: { reason: '' } });
          break;
        case 'TimerFired':
          others.push({ fireTimer: { seq: event.seq } });
          break;
        case 'ActivityTaskCompleted':
        case 'ActivityTaskFailed':
        case 'ActivityTaskTimedOut':
        case 'ActivityTaskCanceled':
          if (this.resolved.has(event.seq)) break;
          this.resolved.add(event.seq);
          others.push({ resolveActivity: { seq: event.seq, result: event.resolution } });
          break;
        default:
      }
    }
    for (const { updateId, name, input } of updates) {
      const meta = { updateId, identity: 'simulation' };
      const doUpdate = {
        id: updateId,
        protocolInstanceId: updateId,
        name,
        input: [...input],
        headers: {},
        meta,
        runValidator,
      };
      calls.push({ doUpdate });
    }
    return [...first, ...calls, ...others];
  }

  private initialization(startedAt: number): coresdk.workflow_activation.IInitializeWorkflow {
    const {
      workflowId,
      workflowType,
      input,
      originalRunId,
      firstRunId,
      memo,
      searchAttributes,
      continuedFromRunId,
    } = this.start;
    return {
      workflowId,
      workflowType,
      arguments: [...input],
      randomnessSeed: seedOf(originalRunId),
      headers: {},
      identity: 'simulation',
      firstExecutionRunId: firstRunId,
      attempt: 1,
      startTime: msNumberToTs(startedAt),
      memo: { fields: { ...memo } },
      searchAttributes: { indexedFields: { ...searchAttributes } },
      continuedFromExecutionRunId: continuedFromRunId ?? '',
    };
  }

  private async activate(
    jobs: Job[],
    at: number,
    task: Extract<HistoryEvent, { readonly type: 'WorkflowTaskStarted' }> | undefined,
    isReplaying: boolean,
    started?: HistoryEvent,
    historyLength = 0,
  ): Promise<Command[]> {
    this.workflow ??= await this.create(started?.at ?? at, at, isReplaying);
    const { runId } = this.start;
    const { completion, calls } = await this.send(this.workflow, {
      runId,
      timestamp: msNumberToTs(at),
      isReplaying,
      historyLength,
      jobs,
      historySizeBytes: Long.fromNumber(task?.historySize ?? 0),
      continueAsNewSuggested: task?.suggestsContinueAsNew ?? false,
      availableInternalFlags: [1, 2, 3, 4, 5, 6],
    });
    for (const call of calls) this.onSink(call, isReplaying);
    if (completion.failed) throw new TaskFailure(completion.failed.failure?.message ?? 'unknown');
    return completion.successful?.commands ?? [];
  }

  private async send(workflow: Workflow, activation: coresdk.workflow_activation.IWorkflowActivation) {
    return this.clock.during(async () => {
      const completion = await workflow.activate(activation);
      return { completion, calls: (await workflow.getAndResetSinkCalls()) as unknown as SinkCall[] };
    });
  }

  /** As the SDK's worker does it. */
  private async create(startedAt: number, at: number, isReplaying: boolean): Promise<Workflow> {
    const { workflowId, workflowType, runId, originalRunId, firstRunId, continuedFromRunId, taskQueue } =
      this.start;
    const info = {
      ...{
        workflowId,
        runId,
        workflowType,
        taskQueue,
        namespace: 'default',
        firstExecutionRunId: firstRunId,
      },
      ...{ searchAttributes: {}, typedSearchAttributes: new TypedSearchAttributes(), memo: {} },
      ...(continuedFromRunId === undefined ? {} : { continuedFromExecutionRunId: continuedFromRunId }),
      originalExecutionRunId: originalRunId,
      startTime: new RealDate(startedAt),
      runStartTime: new RealDate(at),
      taskTimeoutMs: 10_000,
      attempt: 1,
      historyLength: 0,
      historySize: 0,
      continueAsNewSuggested: false,
      unsafe: { now: () => this.clock.now, isReplaying, isReplayingHistoryEvents: isReplaying },
    };
    const options = {
      info,
      randomnessSeed: seedOf(originalRunId).toBytes(),
      now: at,
      showStackTraceSources: false,
    };
    return this.creator.createWorkflow(
      options as unknown as Parameters<ReusableVMWorkflowCreator['createWorkflow']>[0],
    );
  }
}

/** In a replay, the failure of a local activity comes as its bare cause (measured, SDK 1.24.0). */
function asReplayed(resolution: Resolution): Resolution {
  const failure = resolution.failed?.failure;
  return failure ? { failed: { failure: failure.cause ?? failure } } : resolution;
}

/** As the SDK's core says it for an activity that is cancelled and not waited for. */
function cancelledAtOnce(seq: number, name: string): Resolution {
  const activityFailureInfo = {
    activityId: String(seq),
    activityType: { name },
    retryState: temporal.api.enums.v1.RetryState.RETRY_STATE_CANCEL_REQUESTED,
  };
  const cause = { message: '', canceledFailureInfo: {} };
  return { cancelled: { failure: { message: 'Activity cancelled', cause, activityFailureInfo } } };
}

/** The events that the commands of a completed task have made; others may stand between. */
function recordedCommands(events: readonly HistoryEvent[], completedAt: number): HistoryEvent[] {
  const rest = events.slice(completedAt + 1);
  const end = rest.findIndex(({ type }) => type === 'WorkflowTaskStarted');
  return rest.slice(0, end < 0 ? undefined : end).filter(isByCommand);
}

/**
 * A worker that has to report a task before a local activity is over gets another one at once. The activity may end at that
 * moment: its marker then goes with the first task, and what the workflow makes of it with the second.
 */
function isForced(
  events: readonly HistoryEvent[],
  completedAt: number,
  recorded: readonly HistoryEvent[],
): boolean {
  const next = completedAt + recorded.length + 1;
  return (
    recorded.at(-1)?.type === 'MarkerRecorded' &&
    events[next]?.type === 'WorkflowTaskScheduled' &&
    events[next + 1]?.type === 'WorkflowTaskStarted'
  );
}

function compare(
  workflowId: string,
  startedAt: number,
  recorded: readonly HistoryEvent[],
  commands: readonly ServerCommand[],
): void {
  const before = recorded.map(fingerprint);
  const now = commands.flatMap((command) =>
    command.type === 'UpdateRejected' ? [] : [fingerprint(command)],
  );
  const index =
    Math.max(before.length, now.length) === 0 ? -1 : before.findIndex((each, nth) => each !== now[nth]);
  if (index < 0 && before.length === now.length) return;
  const at = index < 0 ? before.length : index;
  throw new NonDeterminism(
    `${workflowId}: the task of event ${startedAt + 1} asks for ${now[at] ?? 'nothing'}, and its history has ${before[at] ?? 'nothing'}`,
  );
}

/** What must be the same in each replay. A history does not hold all that a command has. */
function fingerprint(command: ServerCommand | EventBody): string {
  const text = (value: unknown) => JSON.stringify(value);
  switch (command.type) {
    case 'ActivityTaskScheduled': {
      const { name, taskQueue, input, startToCloseMs, scheduleToCloseMs } = command.activity;
      return text([command.seq, name, taskQueue, input.map(textOf), startToCloseMs, scheduleToCloseMs]);
    }
    case 'MarkerRecorded':
      return `local activity ${command.seq}`;
    case 'TimerStarted':
      return text([command.type, command.seq, command.ms]);
    case 'UpsertWorkflowSearchAttributes':
    case 'WorkflowPropertiesModified':
      // A map, in whatever order.
      return text([
        command.type,
        Object.entries(command.fields)
          .map(([name, value]) => [name, textOf(value)])
          .sort(),
      ]);
    case 'WorkflowExecutionUpdateAccepted':
      return `${command.type} ${command.updateId}`;
    case 'UpdateDone':
    case 'WorkflowExecutionUpdateCompleted':
      return `update done ${command.updateId}`;
    case 'ContinueAsNew':
    case 'WorkflowExecutionContinuedAsNew':
      return 'continue as new';
    case 'WorkflowExecutionCompleted':
      return text([command.type, textOf(command.result)]);
    case 'WorkflowExecutionFailed':
      return text([
        command.type,
        command.failure?.message,
        command.failure?.applicationFailureInfo?.details?.payloads?.map(textOf),
      ]);
    default:
      return 'seq' in command ? `${command.type} ${command.seq}` : command.type;
  }
}

function textOf(payload: Payload | undefined): string {
  return Buffer.from(payload?.data ?? []).toString();
}
