import {
  type ActivityEnd,
  type Closing,
  type End,
  type EventBody,
  type Failure,
  type Fields,
  type HistoryEvent,
  isByCommand,
  isClosing,
  isEndOfActivity,
  pastTasks,
  type Payload,
  type Payloads,
  type Resolution,
  type Scheduled,
  type ServerCommand,
  sizeOf,
  type UpdateRequest,
} from './history';
import { PendingActivity } from './pending-activity';
import type { TemporalServer } from './server';

/** What a run is started with, and hands to the one that follows it. */
export interface RunStart {
  readonly workflowId: string;
  readonly workflowType: string;
  readonly taskQueue: string;
  readonly input: Payloads;
  readonly memo: Fields;
  readonly searchAttributes: Fields;
  readonly runId: string;
  readonly firstRunId: string;
  /** The run that a reset has taken over from, and that one's, to the first: its numbers are drawn again. */
  readonly originalRunId: string;
  readonly continuedFromRunId?: string;
  /** Who has asked for its start, and the id of that request. */
  readonly asked?: { readonly by: string; readonly requestId: string };
}

export const COMPLETED = 'workflow execution already completed';

/** How an update ends for whoever made it. `aborted`: its task failed, or the workflow is over. */
export type UpdateEnd =
  | { readonly kind: 'answered'; readonly result: Payload | undefined }
  /** By its validator; or by its handler, which may have begun to do it. */
  | { readonly kind: 'refused' | 'failed'; readonly failure: Failure }
  | { readonly kind: 'aborted'; readonly reason: 'the workflow task failed' | typeof COMPLETED };

interface Update extends UpdateRequest {
  state: 'admitted' | 'delivered' | 'accepted';
  readonly settle: (end: UpdateEnd) => void;
}

/** A workflow task times out if its worker does not answer. */
const TASK_TIMEOUT_MS = 10_000;

/** A task that fails is tried again after so long. */
const FAILED_TASK_WAIT_MS = 1_000;

/** One run of a workflow as the server keeps it: its history and whatever is pending. */
export class Run {
  readonly events: HistoryEvent[] = [];
  readonly activities = new Map<number, PendingActivity>();
  memo: Fields;
  searchAttributes: Fields;
  status: 'running' | Closing['type'] = 'running';
  closedAt = Infinity;
  end: End = {};
  /** The causes with which workflow tasks of it have failed. */
  readonly failedTasks: string[] = [];
  /** A reset has made it. */
  isReset = false;
  /** Of its history, in bytes. */
  private size = 0;
  private readonly timers = new Map<number, () => void>();
  private readonly updates = new Map<string, Update>();
  private task: { isStarted: boolean; readonly number: number; stop: () => void } | undefined;
  private tasks = 0;
  /** Its first task waits for the end of its start delay. */
  private delayed = false;
  /** The commands of a task are carried out: what happens by them comes after them. */
  private obeying = false;
  private readonly buffered: EventBody[] = [];

  constructor(
    readonly server: TemporalServer,
    readonly start: RunStart,
  ) {
    ({ memo: this.memo, searchAttributes: this.searchAttributes } = start);
  }

  get workflowId(): string {
    return this.start.workflowId;
  }

  get runId(): string {
    return this.start.runId;
  }

  get isOpen(): boolean {
    return this.status === 'running';
  }

  get startedAt(): number {
    return this.events[0]?.at ?? 0;
  }

  /** @param delayMs until its first task; a signal ends it */
  begin(delayMs = 0): void {
    this.delayed = delayMs > 0;
    this.happen({ type: 'WorkflowExecutionStarted', size: this.start.input[0]?.data?.length ?? 0 });
    this.server.visibility.changed(this);
    if (this.delayed)
      this.server.clock.after(delayMs, () => {
        this.delayed = false;
        this.wantTask();
      });
  }

  signal(name: string, ...input: Payload[]): void {
    this.delayed = false;
    this.happen({ type: 'WorkflowExecutionSignaled', name, input });
  }

  requestCancel(): void {
    const isRequested = (body: EventBody) => body.type === 'WorkflowExecutionCancelRequested';
    if (![...this.events, ...this.buffered].some(isRequested))
      this.happen({ type: 'WorkflowExecutionCancelRequested' });
  }

  update(request: UpdateRequest): Promise<UpdateEnd> {
    return new Promise((settle) => {
      if (!this.isOpen) {
        settle({ kind: 'aborted', reason: COMPLETED });
        return;
      }
      this.updates.set(request.updateId, { ...request, state: 'admitted', settle });
      this.wantTask();
    });
  }

  terminate(): void {
    if (this.isOpen) this.close({ type: 'WorkflowExecutionTerminated' });
  }

  /** @param wasStarted a worker has had the attempt, or somebody has completed it */
  activityEnded(
    { seq }: PendingActivity,
    type: ActivityEnd,
    resolution: Resolution,
    wasStarted: boolean,
  ): void {
    this.activities.delete(seq);
    const started: EventBody[] = wasStarted ? [{ type: 'ActivityTaskStarted', seq }] : [];
    this.happen(...started, { type, seq, resolution });
  }

  /** A worker takes the task up. @returns undefined if it is gone */
  startTask() {
    if (this.task?.isStarted !== false || !this.isOpen) return undefined;
    const { number } = this.task;
    const updates = this.updatesThatAre('admitted');
    const suggestsNew = this.events.length >= this.server.suggestFrom;
    this.add({ type: 'WorkflowTaskStarted', historySize: this.size, suggestsNew });
    for (const update of updates) update.state = 'delivered';
    const stop = this.server.clock.after(TASK_TIMEOUT_MS, () => {
      this.taskIsOver(number, { type: 'WorkflowTaskTimedOut' });
      this.wantTask();
    });
    this.task = { isStarted: true, number, stop };
    return { number, updates };
  }

  /** The worker is done with its task. @returns whether the server takes it */
  completeTask(number: number, commands: readonly ServerCommand[]): boolean {
    if (!this.task?.isStarted || this.task.number !== number || !this.isOpen) return false;
    if (commands.some(isClosing) && this.hasBuffered(commands)) {
      this.failTask(number, 'UNHANDLED_COMMAND');
      return false;
    }
    this.task.stop();
    this.task = undefined;
    if (this.leavesNoTrace(commands)) this.events.splice(-2);
    else this.add({ type: 'WorkflowTaskCompleted' });
    this.obeying = true;
    for (const command of commands) this.obey(command);
    this.obeying = false;
    this.flush();
    if (this.hasNews()) this.wantTask();
    return true;
  }

  failTask(number: number, cause: string): void {
    if (this.task?.number !== number) return;
    this.failedTasks.push(cause);
    this.server.said(this, `a workflow task fails: ${cause}`);
    for (const { updateId } of this.updatesThatAre('delivered'))
      this.settle(updateId, { kind: 'aborted', reason: 'the workflow task failed' });
    this.taskIsOver(number, { type: 'WorkflowTaskFailed', cause });
    const waitMs = cause === 'UNHANDLED_COMMAND' ? 0 : FAILED_TASK_WAIT_MS;
    this.server.clock.after(waitMs, () => this.wantTask());
  }

  /** What the server keeps of the run before: its history up to a task, and what came after it. */
  takeOver(before: Run, { startedAt }: { readonly startedAt: number }): void {
    this.isReset = true;
    for (const event of before.events.slice(0, startedAt + 1)) this.add(event, event.at);
    this.add({ type: 'WorkflowTaskFailed', cause: 'RESET_WORKFLOW', seed: this.runId });
    for (const event of [...before.events.slice(startedAt + 1), ...before.buffered]) {
      if (event.type === 'WorkflowExecutionSignaled') this.add({ ...event });
      if (/^WorkflowExecutionUpdateA(ccept|dmitt)ed$/.test(event.type)) {
        const { updateId, name, input } = event as UpdateRequest;
        this.add({ type: 'WorkflowExecutionUpdateAdmitted', updateId, name, input });
        this.updates.set(updateId, { updateId, name, input, state: 'admitted', settle: () => undefined });
      }
    }
    this.resumePending();
    this.server.visibility.changed(this);
    this.wantTask();
  }

  /** @returns the workflow tasks to which it can be reset: where each was started */
  resetPoints(): readonly { readonly startedAt: number }[] {
    return pastTasks(this.events).filter(({ startedAt }) => startedAt >= 0);
  }

  private resumePending(): void {
    const isOver = (kind: 'Timer' | 'Activity', seq: number) =>
      this.events.some(
        (event) =>
          event.type.startsWith(kind) &&
          'seq' in event &&
          event.seq === seq &&
          (/^Timer(Fired|Canceled)$/.test(event.type) || isEndOfActivity(event)),
      );
    for (const event of this.events) {
      if (event.type === 'TimerStarted' && !isOver('Timer', event.seq))
        this.startTimer(event.seq, event.at + event.ms - this.server.clock.now);
      if (event.type === 'ActivityTaskScheduled' && !isOver('Activity', event.seq))
        this.schedule(event.seq, event.activity);
      this.takeFields(event);
    }
  }

  /** Something happens to the workflow, which gets a task for it; what comes during a task waits for its end. */
  private happen(...bodies: EventBody[]): void {
    if (!this.isOpen) return;
    for (const body of bodies)
      if (this.obeying || this.task?.isStarted) this.buffered.push(body);
      else this.add(body);
    this.wantTask();
  }

  /** Whether an event waits that a workflow must hear of before it may end. A timer that it cancels has not fired for it. */
  private hasBuffered(commands: readonly ServerCommand[]): boolean {
    const isCancelled = (seq: number) =>
      commands.some((command) => command.type === 'TimerCanceled' && command.seq === seq);
    return this.buffered.some((body) => body.type !== 'TimerFired' || !isCancelled(body.seq));
  }

  private obey(command: ServerCommand): void {
    if (!this.isOpen) return;
    if (isClosing(command)) {
      if (command.type === 'WorkflowExecutionContinuedAsNew') this.server.continueAsNew(this, command);
      this.close(command);
      return;
    }
    if (command.type === 'UpdateRejected') {
      this.settle(command.updateId, { kind: 'refused', failure: command.failure });
      return;
    }
    if (command.type === 'WorkflowExecutionUpdateAccepted') {
      const update = this.updates.get(command.updateId);
      if (update === undefined) return;
      update.state = 'accepted';
      this.add({ ...command, name: update.name, input: update.input });
      return;
    }
    this.add(command);
    switch (command.type) {
      case 'WorkflowExecutionUpdateCompleted': {
        const { updateId, result, failure } = command;
        this.settle(updateId, failure ? { kind: 'failed', failure } : { kind: 'answered', result });
        return;
      }
      case 'TimerStarted':
        this.startTimer(command.seq, command.ms);
        return;
      case 'TimerCanceled': {
        this.timers.get(command.seq)?.();
        this.timers.delete(command.seq);
        const isIt = (body: EventBody) => body.type === 'TimerFired' && body.seq === command.seq;
        const fired = this.buffered.findIndex(isIt);
        if (fired >= 0) this.buffered.splice(fired, 1);
        return;
      }
      case 'ActivityTaskScheduled':
        this.schedule(command.seq, command.activity);
        return;
      case 'ActivityTaskCancelRequested':
        this.activities.get(command.seq)?.requestCancel();
        return;
      default:
        if (this.takeFields(command)) this.server.visibility.changed(this);
    }
  }

  /** @returns whether the command changes what a list shows */
  private takeFields(body: EventBody): boolean {
    if (!('fields' in body)) return false;
    if (body.type === 'WorkflowPropertiesModified') this.memo = { ...this.memo, ...body.fields };
    else this.searchAttributes = { ...this.searchAttributes, ...body.fields };
    return true;
  }

  private startTimer(seq: number, ms: number): void {
    const stop = this.server.clock.after(ms, () => {
      this.timers.delete(seq);
      this.happen({ type: 'TimerFired', seq });
    });
    this.timers.set(seq, stop);
  }

  private schedule(seq: number, options: Scheduled): void {
    this.activities.set(seq, new PendingActivity(this, seq, options));
  }

  private updatesThatAre(state: Update['state']): Update[] {
    return [...this.updates.values()].filter((update) => update.state === state);
  }

  private settle(updateId: string, end: UpdateEnd): void {
    const update = this.updates.get(updateId);
    this.updates.delete(updateId);
    update?.settle(end);
  }

  private close(body: Closing): void {
    this.task?.stop();
    this.task = undefined;
    // What its last task has led to is in no history; what came before it was terminated is.
    if (this.obeying) this.buffered.length = 0;
    else this.flush();
    this.add(body);
    this.status = body.type;
    if (body.type !== 'WorkflowExecutionContinuedAsNew') this.end = body;
    this.closedAt = this.server.clock.now;
    for (const activity of this.activities.values()) activity.drop();
    for (const stop of this.timers.values()) stop();
    for (const updateId of [...this.updates.keys()])
      this.settle(updateId, { kind: 'aborted', reason: COMPLETED });
    this.server.visibility.changed(this);
  }

  private add(body: EventBody, at = this.server.clock.now): void {
    this.size += sizeOf(body);
    this.events.push({ ...body, id: this.events.length + 1, at });
  }

  private wantTask(): void {
    if (!this.isOpen || this.delayed || this.obeying || this.task !== undefined) return;
    this.tasks += 1;
    this.task = { isStarted: false, number: this.tasks, stop: () => undefined };
    this.add({ type: 'WorkflowTaskScheduled' });
    this.server.offerTask(this);
  }

  private taskIsOver(number: number, body: EventBody): void {
    if (this.task?.number !== number) return;
    this.task.stop();
    this.task = undefined;
    this.add(body);
    for (const update of this.updatesThatAre('delivered')) update.state = 'admitted';
    this.flush();
  }

  /** Ends of activities come last: the server lets them follow their starts. */
  private flush(): void {
    const waiting = this.buffered.splice(0);
    for (const body of waiting) if (!isEndOfActivity(body)) this.add(body);
    for (const body of waiting) if (isEndOfActivity(body)) this.add(body);
  }

  private hasNews(): boolean {
    const last = this.events.findLastIndex(({ type }) => type === 'WorkflowTaskStarted');
    const isNews = (event: HistoryEvent) => !isByCommand(event) && event.type !== 'WorkflowTaskCompleted';
    return this.events.slice(last + 1).some(isNews) || this.updatesThatAre('admitted').length > 0;
  }

  /** A task that had nothing but updates, all of which were refused. */
  private leavesNoTrace(commands: readonly ServerCommand[]): boolean {
    if (commands.length === 0 || !commands.every(({ type }) => type === 'UpdateRejected')) return false;
    const [before] = this.events.slice(-3);
    return before?.type === 'WorkflowTaskCompleted' || (before !== undefined && isByCommand(before));
  }
}
