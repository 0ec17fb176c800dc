import type { Timers } from '../clock';
import {
  type ActivityOptions,
  type Closing,
  type EventBody,
  type Failure,
  type Fields,
  type HistoryEvent,
  isByCommand,
  pastTasks,
  type Payload,
  type Payloads,
  type Resolution,
  sizeOf,
  type UpdateRequest,
} from './history';
import { type ActivityEnd, PendingActivity } from './pending-activity';

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

/** What a workflow task asks of the server, in order. */
export type ServerCommand =
  | EventBody
  | { readonly type: 'UpdateRejected'; readonly updateId: string; readonly failure: Failure }
  | {
      readonly type: 'UpdateDone';
      readonly updateId: string;
      readonly result?: Payload;
      readonly failure?: Failure;
    }
  | { readonly type: 'ContinueAsNew'; readonly input: Payloads; readonly memo: Fields };

/** How an update ends for whoever made it. `aborted`: its task failed, or the workflow is over. */
export type UpdateEnd =
  | { readonly kind: 'answered'; readonly result: Payload | undefined }
  /** By its validator; or by its handler, which may have begun to do it. */
  | { readonly kind: 'refused' | 'failed'; readonly failure: Failure }
  | { readonly kind: 'aborted'; readonly reason: string };

interface Update extends UpdateRequest {
  state: 'admitted' | 'delivered' | 'accepted';
  readonly settle: (end: UpdateEnd) => void;
}

/** What the server is to its runs. */
export interface RunOwner {
  readonly clock: Timers;
  /** From so many events on a run is told to continue as new. */
  readonly suggestFrom: number;
  /** A workflow task waits for a worker. */
  offerTask(run: Run): void;
  enqueue(activity: PendingActivity): void;
  continueAsNew(run: Run, input: Payloads, memo: Fields): void;
  /** What a list shows of it has changed. */
  changed(run: Run): void;
  said(run: Run, words: string): void;
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
  status: 'running' | Closing = 'running';
  closedAt = Infinity;
  /** The causes with which workflow tasks of it have failed. */
  readonly failedTasks: string[] = [];
  /** A reset has made it. */
  isReset = false;
  /** How many events there were, those of tasks that left no trace not counted. */
  private size = 0;
  private readonly timers = new Map<number, () => void>();
  private readonly updates = new Map<string, Update>();
  private task: { state: 'scheduled' | 'started'; readonly number: number; stop: () => void } | undefined;
  private tasks = 0;
  /** Its first task waits for the end of its start delay. */
  private delayed = false;
  /** The commands of a task are carried out: what happens by them comes after them. */
  private obeying = false;
  private readonly buffered: EventBody[] = [];
  private result: { readonly result?: Payload; readonly failure?: Failure } = {};

  constructor(
    private readonly owner: RunOwner,
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

  get end(): { readonly result?: Payload; readonly failure?: Failure } {
    return this.result;
  }

  /** @param delayMs until its first task; a signal ends it */
  begin(delayMs = 0): void {
    this.delayed = delayMs > 0;
    this.happen({ type: 'WorkflowExecutionStarted', size: this.start.input[0]?.data?.length ?? 0 });
    this.owner.changed(this);
    if (this.delayed)
      this.owner.clock.after(delayMs, () => {
        this.delayed = false;
        this.wantTask();
      });
  }

  /** Something happens to the workflow, which gets a task for it; what comes during a task waits for its end. */
  happen(...bodies: EventBody[]): void {
    if (!this.isOpen) return;
    for (const body of bodies)
      if (this.obeying || this.task?.state === 'started') this.buffered.push(body);
      else this.add(body);
    this.wantTask();
  }

  signal(name: string, ...input: Payload[]): void {
    this.delayed = false;
    this.happen({ type: 'WorkflowExecutionSignaled', name, input });
  }

  requestCancel(): void {
    const isRequested = (body: EventBody) => body.type === 'WorkflowExecutionCancelRequested';
    if (this.events.some(isRequested) || this.buffered.some(isRequested)) return;
    this.happen({ type: 'WorkflowExecutionCancelRequested' });
  }

  update(request: UpdateRequest): Promise<UpdateEnd> {
    return new Promise((settle) => {
      if (!this.isOpen) {
        settle({ kind: 'aborted', reason: 'workflow execution already completed' });
        return;
      }
      this.updates.set(request.updateId, { ...request, state: 'admitted', settle });
      this.wantTask();
    });
  }

  terminate(): void {
    if (this.isOpen) this.close({ type: 'WorkflowExecutionTerminated' });
  }

  /** A worker takes the task up. @returns undefined if it is gone */
  startTask() {
    if (this.task?.state !== 'scheduled' || !this.isOpen) return undefined;
    const { number } = this.task;
    const updates = [...this.updates.values()].filter(({ state }) => state === 'admitted');
    const before = this.events.length;
    this.add({
      type: 'WorkflowTaskStarted',
      historySize: this.size,
      suggestsContinueAsNew: before >= this.owner.suggestFrom,
    });
    for (const update of updates) update.state = 'delivered';
    const stop = this.owner.clock.after(TASK_TIMEOUT_MS, () => {
      this.taskIsOver(number, { type: 'WorkflowTaskTimedOut' });
      this.wantTask();
    });
    this.task = { state: 'started', number, stop };
    return { number, updates: updates.map(({ updateId, name, input }) => ({ updateId, name, input })) };
  }

  /** The worker is done with its task. @returns whether the server takes it */
  completeTask(number: number, commands: readonly ServerCommand[]): boolean {
    if (this.task?.state !== 'started' || this.task.number !== number || !this.isOpen) return false;
    const closes = commands.some((command) => command.type === 'ContinueAsNew' || isClosing(command));
    if (closes && this.hasBuffered(commands)) {
      this.failTask(number, 'UNHANDLED_COMMAND');
      return true;
    }
    const { task } = this;
    task.stop();
    this.task = undefined;
    if (this.leavesNoTrace(commands)) this.forgetTask();
    else this.add({ type: 'WorkflowTaskCompleted' });
    this.obeying = true;
    for (const command of commands) this.obey(command);
    this.obeying = false;
    this.goOn();
    return true;
  }

  private goOn(): void {
    if (!this.isOpen) return;
    this.flush();
    if (this.hasNews()) this.wantTask();
  }

  failTask(number: number, cause: string): void {
    if (this.task?.number !== number) return;
    this.failedTasks.push(cause);
    this.owner.said(this, `a workflow task fails: ${cause}`);
    for (const update of [...this.updates.values()].filter(({ state }) => state === 'delivered'))
      this.settle(update.updateId, { kind: 'aborted', reason: 'the workflow task failed' });
    this.taskIsOver(number, { type: 'WorkflowTaskFailed', cause });
    const waitMs = cause === 'UNHANDLED_COMMAND' ? 0 : FAILED_TASK_WAIT_MS;
    this.owner.clock.after(waitMs, () => this.wantTask());
  }

  /** What the server keeps of the run before: its history up to a task, and what came after it. */
  takeOver(before: Run, task: { readonly startedAt: number }, seed: string): void {
    this.isReset = true;
    for (const event of before.events.slice(0, task.startedAt + 1)) this.add(event, event.at);
    this.add({ type: 'WorkflowTaskFailed', cause: 'RESET_WORKFLOW', seed });
    const later = before.events.slice(task.startedAt + 1);
    for (const event of [...later, ...before.buffered]) {
      if (event.type === 'WorkflowExecutionSignaled') this.add({ ...event });
      if (
        event.type === 'WorkflowExecutionUpdateAccepted' ||
        event.type === 'WorkflowExecutionUpdateAdmitted'
      ) {
        const { updateId, name, input } = event;
        this.add({ type: 'WorkflowExecutionUpdateAdmitted', updateId, name, input });
        this.updates.set(updateId, { updateId, name, input, state: 'admitted', settle: () => undefined });
      }
    }
    this.resumePending();
    this.owner.changed(this);
    this.wantTask();
  }

  /** @returns the workflow tasks to which it can be reset: where each was started */
  resetPoints(): readonly { readonly startedAt: number }[] {
    return pastTasks(this.events).filter(({ startedAt }) => startedAt >= 0);
  }

  private resumePending(): void {
    const over = new Set(
      this.events.flatMap((event) => ('seq' in event && isEnd(event) ? [keyOf(event)] : [])),
    );
    for (const event of this.events) {
      if (event.type === 'TimerStarted' && !over.has(`timer ${event.seq}`))
        this.startTimer(event.seq, event.at + event.ms - this.owner.clock.now);
      if (event.type === 'ActivityTaskScheduled' && !over.has(`activity ${event.seq}`))
        this.schedule(event.seq, event.activity);
      if (event.type === 'UpsertWorkflowSearchAttributes')
        this.searchAttributes = { ...this.searchAttributes, ...event.fields };
      if (event.type === 'WorkflowPropertiesModified') this.memo = { ...this.memo, ...event.fields };
    }
  }

  /** Whether an event waits that a workflow must hear of before it may end. A timer that it cancels has not fired for it. */
  private hasBuffered(commands: readonly ServerCommand[]): boolean {
    const cancelled = new Set(commands.flatMap((each) => (each.type === 'TimerCanceled' ? [each.seq] : [])));
    return this.buffered.some((body) => body.type !== 'TimerFired' || !cancelled.has(body.seq));
  }

  private obey(command: ServerCommand): void {
    if (!this.isOpen) return;
    switch (command.type) {
      case 'UpdateRejected':
        this.settle(command.updateId, { kind: 'refused', failure: command.failure });
        return;
      case 'UpdateDone': {
        const { updateId, result, failure } = command;
        this.add({ type: 'WorkflowExecutionUpdateCompleted', updateId });
        this.settle(updateId, failure ? { kind: 'failed', failure } : { kind: 'answered', result });
        return;
      }
      case 'ContinueAsNew':
        this.owner.continueAsNew(this, command.input, command.memo);
        this.close({ type: 'WorkflowExecutionContinuedAsNew' });
        return;
      default:
        this.carryOut(command);
    }
  }

  private carryOut(command: EventBody): void {
    if (isClosing(command)) {
      this.close(command);
      return;
    }
    if (command.type === 'WorkflowExecutionUpdateAccepted') {
      this.accept(command.updateId);
      return;
    }
    this.add(command);
    switch (command.type) {
      case 'TimerStarted':
        this.startTimer(command.seq, command.ms);
        return;
      case 'TimerCanceled': {
        this.timers.get(command.seq)?.();
        this.timers.delete(command.seq);
        const fired = this.buffered.findIndex(
          (body) => body.type === 'TimerFired' && body.seq === command.seq,
        );
        if (fired >= 0) this.buffered.splice(fired, 1);
        return;
      }
      case 'ActivityTaskScheduled':
        this.schedule(command.seq, command.activity);
        return;
      case 'ActivityTaskCancelRequested':
        this.activities.get(command.seq)?.requestCancel();
        return;
      case 'UpsertWorkflowSearchAttributes':
        this.searchAttributes = { ...this.searchAttributes, ...command.fields };
        this.owner.changed(this);
        return;
      case 'WorkflowPropertiesModified':
        this.memo = { ...this.memo, ...command.fields };
        this.owner.changed(this);
        return;
      default:
        return;
    }
  }

  private accept(updateId: string): void {
    const update = this.updates.get(updateId);
    if (update === undefined) return;
    update.state = 'accepted';
    const { name, input } = update;
    this.add({ type: 'WorkflowExecutionUpdateAccepted', updateId, name, input });
  }

  private startTimer(seq: number, ms: number): void {
    const stop = this.owner.clock.after(ms, () => {
      this.timers.delete(seq);
      this.happen({ type: 'TimerFired', seq });
    });
    this.timers.set(seq, stop);
  }

  private schedule(seq: number, options: ActivityOptions): void {
    const { workflowId, workflowType } = this.start;
    const owner = {
      clock: this.owner.clock,
      enqueue: (activity: PendingActivity) => this.owner.enqueue(activity),
      backsOff: ({ name }: PendingActivity) => this.owner.said(this, `${name} backs off`),
      close: (activity: PendingActivity, end: ActivityEnd, resolution: Resolution, wasStarted: boolean) => {
        this.activities.delete(activity.seq);
        const started: EventBody[] = wasStarted ? [{ type: 'ActivityTaskStarted', seq }] : [];
        this.happen(...started, { type: end, seq, resolution });
      },
    };
    this.activities.set(
      seq,
      new PendingActivity(owner, { workflowId, runId: this.runId, workflowType }, seq, options),
    );
  }

  private settle(updateId: string, end: UpdateEnd): void {
    const update = this.updates.get(updateId);
    this.updates.delete(updateId);
    update?.settle(end);
  }

  private close(body: Extract<EventBody, { readonly type: Closing }>): void {
    this.task?.stop();
    this.task = undefined;
    // What its last task has led to is in no history; what came before it was terminated is.
    if (this.obeying) this.buffered.length = 0;
    else this.flush();
    this.add(body);
    this.status = body.type;
    this.result = body;
    this.closedAt = this.owner.clock.now;
    for (const activity of this.activities.values()) activity.drop();
    for (const stop of this.timers.values()) stop();
    for (const updateId of [...this.updates.keys()])
      this.settle(updateId, { kind: 'aborted', reason: 'workflow execution already completed' });
    this.owner.changed(this);
  }

  private add(body: EventBody, at = this.owner.clock.now): void {
    this.size += sizeOf(body);
    this.events.push({ ...body, id: this.events.length + 1, at });
  }

  private wantTask(): void {
    if (!this.isOpen || this.delayed || this.obeying || this.task !== undefined) return;
    this.tasks += 1;
    this.task = { state: 'scheduled', number: this.tasks, stop: () => undefined };
    this.add({ type: 'WorkflowTaskScheduled' });
    this.owner.offerTask(this);
  }

  private taskIsOver(number: number, body: EventBody): void {
    if (this.task?.number !== number) return;
    this.task.stop();
    this.task = undefined;
    this.add(body);
    for (const update of this.updates.values()) if (update.state === 'delivered') update.state = 'admitted';
    this.flush();
  }

  /** Ends of activities come last: the server lets them follow their starts. */
  private flush(): void {
    const waiting = this.buffered.splice(0);
    for (const body of waiting) if (!isLate(body)) this.add(body);
    for (const body of waiting) if (isLate(body)) this.add(body);
  }

  private hasNews(): boolean {
    const last = this.events.findLastIndex(({ type }) => type === 'WorkflowTaskStarted');
    const isNews = (event: HistoryEvent) => !isByCommand(event) && event.type !== 'WorkflowTaskCompleted';
    return (
      this.events.slice(last + 1).some(isNews) ||
      [...this.updates.values()].some(({ state }) => state === 'admitted')
    );
  }

  /** A task that had nothing but updates, all of which were refused. */
  private leavesNoTrace(commands: readonly ServerCommand[]): boolean {
    if (commands.length === 0 || !commands.every(({ type }) => type === 'UpdateRejected')) return false;
    const [before] = this.events.slice(-3);
    return before?.type === 'WorkflowTaskCompleted' || (before !== undefined && isByCommand(before));
  }

  private forgetTask(): void {
    this.events.splice(-2);
  }
}

function isClosing(command: ServerCommand): command is Extract<EventBody, { readonly type: Closing }> {
  return (
    command.type === 'WorkflowExecutionCompleted' ||
    command.type === 'WorkflowExecutionFailed' ||
    command.type === 'WorkflowExecutionCanceled'
  );
}

function isEnd({ type }: HistoryEvent): boolean {
  return /^(Timer(Fired|Canceled)|ActivityTask(Completed|Failed|TimedOut|Canceled))$/.test(type);
}

function isLate({ type }: EventBody): boolean {
  return /^ActivityTask(Completed|Failed|TimedOut|Canceled)$/.test(type);
}

function keyOf({ type, seq }: { readonly type: string; readonly seq: number }): string {
  return `${type.startsWith('Timer') ? 'timer' : 'activity'} ${seq}`;
}
