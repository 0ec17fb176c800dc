import { msNumberToTs } from '@temporalio/common/lib/time';
import { coresdk } from '@temporalio/proto';
import type { Workflow, WorkflowCreateOptions } from '@temporalio/worker/lib/workflow/interface';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import type { SinkCall } from '@temporalio/workflow';
import type { VirtualClock } from '../clock';
import {
  activityFailure,
  type Command,
  fromPayload,
  type HistoryEvent,
  isCommandEvent,
  isActivityEnd,
  type Job,
  type Marker,
  completedTaskIndexes,
  type Resolution,
  type RunStart,
  type ServerCommand,
  type UpdateRequest,
} from '../temporal/history';
import type { Run } from '../temporal/run';
import { addCommands, fingerprint, type CommandState } from './commands';
import { seedOf } from './seed';

/** The real class. The fake class of the clock has another name, so the workflow sandbox would not recognize it. */
const RealDate = Date;

export type LocalCall = coresdk.workflow_commands.IScheduleLocalActivity;

/** Runs a local activity of a workflow task. */
type RunLocally = (call: LocalCall) => Promise<Marker>;

/** The commands of a workflow differ from its history. */
export class NonDeterminism extends Error {}

/**
 * A run in the cache of a worker: the workflow in the SDK's sandbox. This class does the work of the SDK's core. It makes activations from
 * events, replays histories, and runs local activities within a workflow task. If an activity is cancelled without waiting for the
 * cancellation, it is resolved at once.
 */
export class CachedRun {
  /** Index of the start of the latest task that was applied. */
  private appliedTo = -1;
  /** Activities that are resolved for the workflow. A later end on the Temporal server is ignored. */
  private readonly resolved = new Set<number>();
  private readonly commandState: CommandState = { activities: new Map(), accepted: new Set() };
  private workflow: Workflow | undefined;
  /** Commands of a replay that the history records with the next workflow task. */
  private commandsForNextTask: ServerCommand[] = [];

  constructor(
    private readonly creator: ReusableVMWorkflowCreator,
    private readonly start: RunStart,
    private readonly clock: Pick<VirtualClock, 'during'>,
    private readonly onSink: (call: SinkCall) => void = () => undefined,
  ) {}

  async dispose(): Promise<void> {
    await this.workflow?.dispose();
    this.workflow = undefined;
  }

  /**
   * Replays the tasks that this cached run has not seen, and then performs the workflow task at the end of the history.
   *
   * @throws NonDeterminism, or an error if the workflow code fails the task
   */
  async doTask(
    events: readonly HistoryEvent[],
    updates: readonly UpdateRequest[],
    run: RunLocally,
  ): Promise<ServerCommand[]> {
    await this.replay(events);
    return this.applyTask(events, events.length - 1, updates, run);
  }

  /** @throws NonDeterminism if the commands of the workflow differ from its history */
  async replay(events: readonly HistoryEvent[]): Promise<void> {
    for (const startedAt of completedTaskIndexes(events)) {
      if (startedAt <= this.appliedTo) continue;
      const recorded = recordedCommands(events, startedAt + 2);
      const updates = recorded.flatMap((event) =>
        event.type === 'WorkflowExecutionUpdateAccepted' ? [event] : [],
      );
      const markers = recorded.flatMap((event) => (event.type === 'MarkerRecorded' ? [event] : []));
      const commands = await this.applyTask(events, startedAt, updates, markers);
      if (hasForcedTask(events, startedAt + 2, recorded))
        this.commandsForNextTask = commands.splice(recorded.length);
      const before = recorded.map(fingerprint);
      const now = commands.filter(({ type }) => type !== 'UpdateRejected').map(fingerprint);
      const at = [...before, undefined].findIndex((each, nth) => each !== now[nth]);
      if (at >= 0)
        throw new NonDeterminism(
          `${this.start.workflowId}: the workflow task of event ${startedAt + 1} makes the command ${now[at] ?? 'none'}, but the history has ${before[at] ?? 'none'}`,
        );
    }
  }

  /** Queries the workflow in its current state. */
  async query(name: string): Promise<unknown> {
    const queryWorkflow = { queryId: 'query', queryType: name, arguments: [] };
    // The SDK converts other jobs of an activation to protobuf messages, but not queries.
    const job = coresdk.workflow_activation.WorkflowActivationJob.create({ queryWorkflow });
    const [command] = await this.activate({ jobs: [job], isReplaying: true });
    const { succeeded, failed } = command?.respondToQuery ?? {};
    if (!succeeded) throw new Error(failed?.message ?? 'the query failed');
    return fromPayload(succeeded.response);
  }

  /** @param local a function that runs local activities; in a replay, their recorded results */
  private async applyTask(
    events: readonly HistoryEvent[],
    startedAt: number,
    updates: readonly UpdateRequest[],
    local: RunLocally | readonly Marker[],
  ): Promise<ServerCommand[]> {
    const task = events[startedAt];
    if (task?.type !== 'WorkflowTaskStarted')
      throw new Error('a history does not end with the start of a task');
    this.workflow ??= await this.create(events[0]?.at ?? 0, task.at);
    const isReplaying = typeof local !== 'function';
    const before = this.appliedTo;
    this.appliedTo = startedAt;
    const jobs = jobsOf(
      this.start,
      events.slice(before + 1, startedAt),
      updates,
      !isReplaying,
      this.resolved,
    );
    const done = this.commandsForNextTask.splice(0);
    const waiting = new Map<number, Promise<Marker> | undefined>();
    for (let [next, at] = [jobs, task.at]; ;) {
      const commands = await this.activate({
        ...{ jobs: next, timestamp: msNumberToTs(at), isReplaying, historyLength: startedAt + 1 },
        ...{ continueAsNewSuggested: task.suggestsNew, availableInternalFlags: [1, 2, 3, 4, 5, 6] },
      });
      const { locals, cancelled } = addCommands(commands, done, this.commandState);
      for (const call of locals) waiting.set(call.seq ?? 0, isReplaying ? undefined : local(call));
      if (cancelled.length > 0) {
        next = cancelled.map((seq) => this.immediateCancellation(seq));
        continue;
      }
      if (waiting.size === 0) break;
      const marker = isReplaying
        ? local.find(({ seq }) => waiting.has(seq))
        : await Promise.race([...waiting.values()]);
      // In this replay, the workflow task ended before the local activity.
      if (marker === undefined) break;
      const { seq, endedAt, resolution } = marker;
      waiting.delete(seq);
      done.push({ type: 'MarkerRecorded', seq, endedAt, resolution });
      const result = isReplaying ? toReplayedResolution(resolution) : resolution;
      next = [{ resolveActivity: { seq, result, isLocal: true } }];
      at = Math.max(task.at, endedAt);
    }
    // The Temporal server removes a task from the history if all of its updates were rejected and nothing else happened.
    if (jobs.every(({ doUpdate }) => doUpdate) && done.every(({ type }) => type === 'UpdateRejected'))
      this.appliedTo = before;
    return done;
  }

  /** Makes the resolution with which the SDK's core ends an activity that is cancelled without waiting. */
  private immediateCancellation(seq: number): Job {
    this.resolved.add(seq);
    const cause = { message: '', canceledFailureInfo: {} };
    const name = this.commandState.activities.get(seq)?.activityType ?? '';
    const failure = activityFailure({ seq, name }, 'Activity cancelled', cause, 'CANCEL_REQUESTED');
    return { resolveActivity: { seq, result: { cancelled: { failure } } } };
  }

  private async activate(activation: coresdk.workflow_activation.IWorkflowActivation): Promise<Command[]> {
    const { workflow } = this;
    if (workflow === undefined) throw new Error('the workflow is not in the sandbox');
    const { completion, calls } = await this.clock.during(async () => ({
      completion: await workflow.activate(activation),
      calls: await workflow.getAndResetSinkCalls(),
    }));
    calls.forEach(this.onSink);
    if (completion.failed) throw new Error(completion.failed.failure?.message ?? 'unknown');
    return completion.successful?.commands ?? [];
  }

  /** Creates the workflow like the SDK's worker. Activations update the other fields of the workflow's information. */
  private create(startedAt: number, now: number): Promise<Workflow> {
    const { workflowId, workflowType, runId, originalRunId, continuedFromRunId, taskQueue } = this.start;
    const info = {
      ...{ workflowId, runId, workflowType, taskQueue, namespace: 'default' },
      firstExecutionRunId: this.start.firstRunId,
      continuedFromExecutionRunId: continuedFromRunId,
      startTime: new RealDate(startedAt),
    };
    const randomnessSeed = seedOf(originalRunId).toBytes();
    const options = { info, randomnessSeed, now, showStackTraceSources: false };
    return this.creator.createWorkflow(options as unknown as WorkflowCreateOptions);
  }
}

/** Replays the whole history of a run, like a worker without a cache, and then queries the workflow. @throws NonDeterminism */
export async function replayRun(
  creator: ReusableVMWorkflowCreator,
  { start, events }: Pick<Run, 'start' | 'events'>,
  clock: Pick<VirtualClock, 'during'>,
  query?: string,
): Promise<unknown> {
  const copy = new CachedRun(creator, start, clock);
  try {
    await copy.replay(events);
    return query === undefined ? undefined : await copy.query(query);
  } finally {
    await copy.dispose();
  }
}

/**
 * Makes the jobs of an activation, in the order of the SDK's core: signals and updates come before the ends of activities and timers.
 *
 * @param resolved activities that are resolved for the workflow; the function adds the activities of this activation
 */
function jobsOf(
  { input, memo, searchAttributes }: RunStart,
  news: readonly HistoryEvent[],
  updates: readonly UpdateRequest[],
  runValidator: boolean,
  resolved: Set<number>,
): Job[] {
  const first: Job[] = [];
  const calls: Job[] = [];
  const others: Job[] = [];
  for (const event of news) {
    if (event.type === 'WorkflowExecutionStarted') {
      const [fields, indexedFields] = [memo, searchAttributes];
      // The SDK has the other fields from the creation of the workflow.
      first.push({
        initializeWorkflow: { arguments: input, memo: { fields }, searchAttributes: { indexedFields } },
      });
    } else if (event.type === 'WorkflowTaskFailed' && event.seed !== undefined)
      first.push({ updateRandomSeed: { randomnessSeed: seedOf(event.seed) } });
    else if (event.type === 'WorkflowExecutionSignaled')
      calls.push({ signalWorkflow: { signalName: event.name, input: event.input } });
    else if (event.type === 'WorkflowExecutionCancelRequested') others.push({ cancelWorkflow: {} });
    else if (event.type === 'TimerFired') others.push({ fireTimer: { seq: event.seq } });
    else if (isActivityEnd(event) && !resolved.has(event.seq)) {
      resolved.add(event.seq);
      others.push({ resolveActivity: { seq: event.seq, result: event.resolution } });
    }
  }
  for (const { updateId: id, name, input: args } of updates)
    calls.push({ doUpdate: { id, protocolInstanceId: id, name, input: args, runValidator } });
  return [...first, ...calls, ...others];
}

/** In a replay, the SDK's core 1.24.0 resolves a failed local activity with the cause of the failure only. */
function toReplayedResolution(resolution: Resolution): Resolution {
  const failure = resolution.failed?.failure;
  return failure ? { failed: { failure: failure.cause ?? failure } } : resolution;
}

/** Returns the events that the commands of a completed workflow task made. Other events between them are skipped. */
function recordedCommands(events: readonly HistoryEvent[], from: number): HistoryEvent[] {
  const rest = events.slice(from);
  const end = rest.findIndex(({ type }) => type === 'WorkflowTaskStarted');
  return rest.slice(0, end < 0 ? undefined : end).filter(isCommandEvent);
}

/**
 * A worker that must report a workflow task before a local activity has ended gets another task at once. If the activity ends at this moment,
 * its marker belongs to the first task, and the next commands of the workflow belong to the second task.
 */
function hasForcedTask(
  events: readonly HistoryEvent[],
  from: number,
  recorded: readonly HistoryEvent[],
): boolean {
  const [scheduled, started] = events.slice(from + recorded.length);
  return (
    recorded.at(-1)?.type === 'MarkerRecorded' &&
    scheduled?.type === 'WorkflowTaskScheduled' &&
    started?.type === 'WorkflowTaskStarted'
  );
}
