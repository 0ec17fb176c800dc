import {
  type Closing,
  type End,
  type EventBody,
  type Fields,
  type HistoryEvent,
  isCommandEvent,
  isClosing,
  ACTIVITY_END,
  isActivityEnd,
  completedTaskIndexes,
  type Payload,
  type RunStart,
  type Scheduled,
  type ServerCommand,
  type UpdateRequest,
} from './history';
import { PendingActivity } from './pending-activity';
import type { TemporalServer } from './server';
import { COMPLETED, type UpdateEnd, Updates } from './updates';

/** A workflow task times out if its worker does not report within this time. */
const TASK_TIMEOUT_MS = 10_000;

/** The wait before a failed workflow task is repeated. */
const FAILED_TASK_WAIT_MS = 1_000;

/** A workflow task that a worker has started, with its updates. `stop` cancels its timeout. */
interface StartedTask {
  readonly updates: readonly UpdateRequest[];
  readonly stop: () => void;
}

/** A run of a workflow on the Temporal server: its history, and its pending activities, timers, updates and workflow task. */
export class Run {
  readonly events: HistoryEvent[] = [];
  readonly activities = new Map<number, PendingActivity>();
  readonly workflowId: string;
  readonly runId: string;
  memo: Fields;
  searchAttributes: Fields;
  status: 'running' | Closing['type'] = 'running';
  closedAt = Infinity;
  end: End = {};
  /** The causes of the failed workflow tasks. */
  readonly failedTasks: string[] = [];
  /** Whether a reset made the run. */
  isReset = false;
  /** The response to the query `progress` after the latest completed task; undefined if no task has been completed. */
  progress: unknown;
  private readonly timers = new Map<number, () => void>();
  private readonly updates = new Updates();
  private task: StartedTask | 'waits' | undefined;
  /** Whether the commands of a workflow task are being applied. Events that they cause are recorded after the commands. */
  private isApplyingCommands = false;
  private buffered: EventBody[] = [];

  /** @param isDelayed whether the start delay is not over, so that the run gets no workflow task */
  constructor(
    readonly server: TemporalServer,
    readonly start: RunStart,
    private isDelayed = false,
  ) {
    ({ memo: this.memo, searchAttributes: this.searchAttributes } = start);
    ({ workflowId: this.workflowId, runId: this.runId } = start);
  }

  get isOpen(): boolean {
    return this.status === 'running';
  }

  get startedAt(): number {
    return this.events[0]?.at ?? 0;
  }

  begin(): void {
    this.recordEvents({ type: 'WorkflowExecutionStarted' });
    this.server.visibility.changed(this);
  }

  /** Ends the start delay: its time is over, or an update arrived. */
  endDelay(): void {
    this.isDelayed = false;
    this.scheduleTask();
  }

  signal(name: string, ...input: Payload[]): void {
    this.recordEvents({ type: 'WorkflowExecutionSignaled', name, input });
  }

  requestCancel(): void {
    const isRequested = (body: EventBody) => body.type === 'WorkflowExecutionCancelRequested';
    if (![...this.events, ...this.buffered].some(isRequested))
      this.recordEvents({ type: 'WorkflowExecutionCancelRequested' });
  }

  update(request: UpdateRequest): Promise<UpdateEnd> {
    if (!this.isOpen) return Promise.resolve({ kind: 'aborted', reason: COMPLETED });
    const end = this.updates.admit(request);
    this.endDelay();
    return end;
  }

  terminate(): void {
    if (this.isOpen) this.close({ type: 'WorkflowExecutionTerminated' });
  }

  activityEnded(seq: number, wasStarted: boolean, end: EventBody): void {
    this.activities.delete(seq);
    const started: EventBody[] = wasStarted ? [{ type: 'ActivityTaskStarted', seq }] : [];
    this.recordEvents(...started, end);
  }

  /** A worker starts the workflow task. @returns undefined if no task is waiting */
  startTask(): StartedTask | undefined {
    if (this.task !== 'waits') return undefined;
    const updates = this.updates.thatAre('admitted');
    // Each further run is twice as long, so that a workflow has few runs. The first runs suffice to find faults of continue-as-new.
    const runs = this.server.runs.filter(({ workflowId }) => workflowId === this.workflowId).length;
    const suggestsNew = this.events.length >= this.server.suggestFrom * 2 ** (runs - 1);
    this.add({ type: 'WorkflowTaskStarted', suggestsNew });
    for (const update of updates) update.state = 'delivered';
    const stop = this.server.clock.after(TASK_TIMEOUT_MS, () => {
      this.endTask(task, { type: 'WorkflowTaskTimedOut' });
      this.scheduleTask();
    });
    const task = { updates, stop };
    return (this.task = task);
  }

  /** A worker reports the commands of its workflow task. @returns whether the Temporal server accepts them */
  completeTask(task: StartedTask, commands: readonly ServerCommand[]): boolean {
    if (this.task !== task) return false;
    if (commands.some(isClosing) && hasUnhandledEvents(this.buffered, commands)) {
      this.failTask(task, 'UNHANDLED_COMMAND');
      return false;
    }
    this.stopTask();
    if (isRemovedFromHistory(this.events, commands)) this.events.splice(-2);
    else this.add({ type: 'WorkflowTaskCompleted' });
    this.isApplyingCommands = true;
    for (const command of commands) this.applyCommand(command);
    this.isApplyingCommands = false;
    const hasNews = this.buffered.length > 0;
    this.flush();
    if (hasNews || this.updates.thatAre('admitted').length > 0) this.scheduleTask();
    return true;
  }

  failTask(task: StartedTask, cause: string): void {
    if (this.task !== task) return;
    this.failedTasks.push(cause);
    this.server.onEvent(this, `a workflow task fails: ${cause}`);
    this.updates.abort('the workflow task failed', 'delivered');
    this.endTask(task, { type: 'WorkflowTaskFailed', cause });
    const waitMs = cause === 'UNHANDLED_COMMAND' ? 0 : FAILED_TASK_WAIT_MS;
    this.server.clock.after(waitMs, () => this.scheduleTask());
  }

  /** Copies the history of the reset run up to a workflow task, and applies its later signals and updates again. */
  copyHistoryFrom(before: Run, startedAt: number): void {
    this.isReset = true;
    for (const event of before.events.slice(0, startedAt + 1)) this.add(event, event.at);
    this.add({ type: 'WorkflowTaskFailed', cause: 'RESET_WORKFLOW', seed: this.runId });
    for (const event of [...before.events.slice(startedAt + 1), ...before.buffered]) {
      if (event.type === 'WorkflowExecutionSignaled') this.add({ ...event });
      if ('updateId' in event && 'input' in event) {
        this.add({ ...event, type: 'WorkflowExecutionUpdateAdmitted' });
        void this.updates.admit(event);
      }
    }
    this.resumePending();
    this.server.visibility.changed(this);
    this.scheduleTask();
  }

  /** Returns the workflow tasks to which the run can be reset, as indexes of their `WorkflowTaskStarted` events. */
  resetPoints(): readonly number[] {
    return completedTaskIndexes(this.events);
  }

  private resumePending(): void {
    const has = (seq: number, ends: RegExp) =>
      this.events.some((event) => 'seq' in event && event.seq === seq && ends.test(event.type));
    for (const event of this.events) {
      if (event.type === 'TimerStarted' && !has(event.seq, /^Timer(Fired|Canceled)$/))
        this.startTimer(event.seq, event.at + event.ms - this.server.clock.now);
      if (event.type === 'ActivityTaskScheduled' && !has(event.seq, ACTIVITY_END))
        this.schedule(event.seq, event.activity);
      if ('fields' in event) this.takeFields(event);
    }
  }

  /** Records events and schedules a workflow task. Events during a workflow task are recorded after its end. */
  private recordEvents(...bodies: EventBody[]): void {
    if (!this.isOpen) return;
    for (const body of bodies)
      if (this.isApplyingCommands || typeof this.task === 'object') this.buffered.push(body);
      else this.add(body);
    this.scheduleTask();
  }

  private applyCommand(command: ServerCommand): void {
    if (!this.isOpen) return;
    if (isClosing(command)) {
      this.close(command);
      if (command.type === 'WorkflowExecutionContinuedAsNew') this.server.continueAsNew(this, command);
      return;
    }
    if ('updateId' in command) {
      const event = this.updates.applyCommand(command);
      if (event !== undefined) this.add(event);
      return;
    }
    this.add(command);
    const { type } = command;
    if (type === 'TimerStarted') this.startTimer(command.seq, command.ms);
    else if (type === 'ActivityTaskScheduled') this.schedule(command.seq, command.activity);
    else if (type === 'ActivityTaskCancelRequested') this.activities.get(command.seq)?.requestCancel();
    else if (type === 'TimerCanceled') {
      this.timers.get(command.seq)?.();
      this.timers.delete(command.seq);
      this.buffered = this.buffered.filter((body) => body.type !== 'TimerFired' || body.seq !== command.seq);
    } else if ('fields' in command) {
      this.takeFields(command);
      this.server.visibility.changed(this);
    }
  }

  private schedule(seq: number, activity: Scheduled): void {
    this.activities.set(seq, new PendingActivity(this, seq, activity));
  }

  private takeFields({ type, fields }: Extract<EventBody, { readonly fields: Fields }>): void {
    if (type === 'WorkflowPropertiesModified') this.memo = { ...this.memo, ...fields };
    else this.searchAttributes = { ...this.searchAttributes, ...fields };
  }

  private startTimer(seq: number, ms: number): void {
    const stop = this.server.clock.after(ms, () => {
      this.timers.delete(seq);
      this.recordEvents({ type: 'TimerFired', seq });
    });
    this.timers.set(seq, stop);
  }

  private close(body: Closing): void {
    this.stopTask();
    // Events that the last commands caused are not recorded. Events that arrived before a termination are recorded.
    if (this.isApplyingCommands) this.buffered = [];
    else this.flush();
    this.add(body);
    this.status = body.type;
    if (body.type !== 'WorkflowExecutionContinuedAsNew') this.end = body;
    this.closedAt = this.server.clock.now;
    for (const activity of this.activities.values()) activity.drop();
    for (const stop of this.timers.values()) stop();
    this.updates.abort(COMPLETED, 'admitted', 'delivered', 'accepted');
    this.server.visibility.changed(this);
  }

  private add(body: EventBody, at = this.server.clock.now): void {
    this.events.push({ ...body, id: this.events.length + 1, at });
  }

  private scheduleTask(): void {
    if (!this.isOpen || this.isDelayed || this.isApplyingCommands || this.task !== undefined) return;
    this.task = 'waits';
    this.add({ type: 'WorkflowTaskScheduled' });
    this.server.enqueue(this, this.workflowId);
  }

  private stopTask(): void {
    if (typeof this.task === 'object') this.task.stop();
    this.task = undefined;
  }

  private endTask(task: StartedTask, body: EventBody): void {
    if (this.task !== task) return;
    this.stopTask();
    this.add(body);
    for (const update of this.updates.thatAre('delivered')) update.state = 'admitted';
    this.flush();
  }

  /** Records the buffered events. The ends of activities come last, like on the Temporal server. */
  private flush(): void {
    const waiting = this.buffered.splice(0);
    for (const body of waiting) if (!isActivityEnd(body)) this.add(body);
    for (const body of waiting) if (isActivityEnd(body)) this.add(body);
  }
}

/** Whether the workflow must handle a buffered event before it may end. A fired timer that the task cancels does not count. */
function hasUnhandledEvents(waiting: readonly EventBody[], commands: readonly ServerCommand[]): boolean {
  const isCancelled = (seq: number) =>
    commands.some((command) => command.type === 'TimerCanceled' && command.seq === seq);
  return waiting.some((body) => body.type !== 'TimerFired' || !isCancelled(body.seq));
}

/** Whether the workflow task had only updates, and all of them were rejected. The Temporal server removes such a task. */
function isRemovedFromHistory(events: readonly HistoryEvent[], commands: readonly ServerCommand[]): boolean {
  if (commands.length === 0 || !commands.every(({ type }) => type === 'UpdateRejected')) return false;
  const [before] = events.slice(-3);
  return before?.type === 'WorkflowTaskCompleted' || (before !== undefined && isCommandEvent(before));
}
