import type { Client } from '@temporalio/client';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import type { SinkCall } from '@temporalio/workflow';
import type { Process, VirtualClock } from '../clock';
import type { RandomSource } from '../random-source';
import { fromPayload, isClosing, type Marker, toMs } from '../temporal/history';
import type { PendingActivity } from '../temporal/pending-activity';
import type { Run } from '../temporal/run';
import type { TemporalServer } from '../temporal/server';
import { createClient, grpcError, UNAVAILABLE } from '../temporal/simulated-client';
import { cancelIfRequested, activityInfo, attemptInfo, localResolution, sdkActivity } from './activity';
import { CachedRun, type LocalCall, NonDeterminism } from './cached-run';
import { Heartbeats } from './heartbeats';

type Activities = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;

/** The parts of a worker, and the functions that it calls when something happens. */
export interface WorkerOptions {
  readonly name: string;
  readonly clock: VirtualClock;
  readonly random: RandomSource;
  readonly server: TemporalServer;
  readonly workflows: ReusableVMWorkflowCreator;
  /** Creates the activity functions in the worker's process, so that they can store data in the process and read its clock. */
  readonly activities: (worker: SimulatedWorker, shutdown: AbortSignal) => Activities;
  readonly reached: (point: string, worker: SimulatedWorker) => void;
  readonly logged: (run: Run, call: SinkCall) => void;
  readonly failed: (run: Run, reason: string) => void;
  /** The name of the query whose response is stored with a run after each of its workflow tasks; undefined for no query. */
  readonly queryOf: (run: Run) => string | undefined;
  /** Whether the worker evicts the cached run before its next workflow task. */
  readonly shouldEvict: (run: Run) => boolean;
}

/** The duration of each direction of a call to the Temporal server, in milliseconds. */
const CALL_MS = { usual: 15, slow: 4_000, slowShare: 0.03 };

/** The wait before the SDK's core repeats a report that it could not deliver. */
const REPORT_AGAIN_MS = 500;

/** The start-to-close timeout of a local activity. */
const LOCAL_TIMEOUT_MS = 5_000;

/**
 * A worker process. The worker polls for tasks, runs the real activity functions with the SDK's own `Activity`, and runs workflows in the
 * SDK's sandbox. The worker can die, be frozen, and lose the request or the response of one call.
 */
export class SimulatedWorker implements Process {
  state: 'alive' | 'frozen' | 'stopping' | 'dead' = 'alive';
  clockErrorMs = 0;
  suspendedMs = 0;
  /** The part of the next call to the Temporal server that is lost. */
  nextCallLoss: 'request' | 'response' | undefined;
  /** The part of the next activity that can't be decoded or encoded, like with a codec that fails once. */
  nextCodecFailure: 'input' | 'result' | undefined;
  readonly client: Client;
  private readonly shutdown = new AbortController();
  private readonly activities: Activities;
  readonly cache = new Map<string, CachedRun>();
  private readonly heldWork: (() => void)[] = [];
  private readonly queues = new Map<string, Promise<unknown>>();

  constructor(private readonly options: WorkerOptions) {
    this.client = createClient(options.server, (method, answer) => this.callServer(method, answer), {
      // Each worker has another namespace, so that values that a process caches by namespace are not shared.
      namespace: `${options.server.namespace} of ${options.name}`,
      identity: options.name,
    });
    this.activities = options.clock.runAs(this, () => options.activities(this, this.shutdown.signal));
    options.server.join(this);
  }

  get name(): string {
    return this.options.name;
  }

  kill(): void {
    this.state = 'dead';
    this.heldWork.length = 0;
    for (const cached of this.cache.values()) void cached.dispose();
    this.cache.clear();
  }

  /** Freezes the process. The monotonic clock of a suspended machine stops; the clock of a stopped process does not. */
  freeze(ms: number, isSuspended: boolean): boolean {
    if (this.state !== 'alive') return false;
    this.state = 'frozen';
    this.options.clock.after(ms, () => {
      if (this.state !== 'frozen') return;
      this.state = 'alive';
      if (isSuspended) this.suspendedMs += ms;
      for (const work of this.heldWork.splice(0)) this.whenAwake(work);
      this.options.server.join(this);
    });
    return true;
  }

  /** Shuts the worker down, like SIGTERM: it accepts no more tasks, and the tasks in progress continue to their ends. */
  stop(): void {
    if (this.state !== 'alive') return;
    this.state = 'stopping';
    this.options.clock.runAs(this, () => this.shutdown.abort());
  }

  whenAwake(work: () => void): void {
    if (this.state === 'dead') return;
    if (this.state === 'frozen') this.heldWork.push(work);
    else this.options.clock.runAs(this, work);
  }

  waitUntilAwake(): Promise<void> {
    return new Promise((resolve) => this.whenAwake(resolve));
  }

  /** Makes a call to the Temporal server. If the worker dies during the call, the effect on the Temporal server remains. */
  callServer<T>(method: string, answer: () => T): Promise<T> {
    const { server, clock, random, reached } = this.options;
    const lost = this.nextCallLoss;
    this.nextCallLoss = undefined;
    const afterDelay = (work: () => void) => clock.after(random.delayMs(method, 'takes', CALL_MS), work);
    return new Promise((resolve, reject) => {
      // Code that continues after the death of its process has no effect.
      if (this.state === 'dead') return;
      const back = (end: () => void) => afterDelay(() => this.whenAwake(end));
      const isLost = () => reject(grpcError(UNAVAILABLE, 'the connection to the server was lost'));
      if (lost === 'request') {
        back(isLost);
        return;
      }
      reached(`${method} requested`, this);
      afterDelay(() => {
        server.whenAvailable(() => {
          let end: () => void;
          try {
            const value = answer();
            reached(`${method} recorded`, this);
            end = () => resolve(value);
          } catch (error) {
            const reason = error as Error;
            end = () => reject(reason);
          }
          back(lost === 'response' ? isLost : end);
        });
      });
    });
  }

  runWorkflowTask(run: Run): void {
    const task = run.startTask();
    if (task === undefined) return;
    // Events that arrive during the workflow task are not part of it.
    const events = [...run.events];
    this.options.reached('task started', this);
    for (const { name } of task.updates) this.options.reached(`${name} started`, this);
    this.whenAwake(() => {
      void this.runSequentially(run, async () => {
        if (this.options.shouldEvict(run)) await this.evict(run);
        const { workflows, clock, logged } = this.options;
        const cached =
          this.cache.get(run.runId) ??
          new CachedRun(workflows, run.start, clock, (call) => {
            if (!call.workflowInfo.unsafe.isReplaying) logged(run, call);
          });
        this.cache.set(run.runId, cached);
        const commands = await cached
          .doTask(events, task.updates, (call) => this.runLocally(run, call))
          .catch((error: unknown) => error as Error);
        // The error may come from the realm of the sandbox, so `instanceof Error` would not work.
        if ('message' in commands) {
          if (this.state === 'dead') return;
          const reason = `${commands instanceof NonDeterminism ? 'non-determinism: ' : ''}${commands.message}`;
          this.options.failed(run, reason);
          await this.evict(run);
          await this.report(() => run.failTask(task, reason));
          return;
        }
        const query = commands.some(isClosing) ? undefined : this.options.queryOf(run);
        if (this.state === 'dead') return;
        const progress = query && (await cached.query(query));
        // If the report is repeated, the first one counts.
        let isAccepted: boolean | undefined;
        await this.report(() => {
          const accepted = run.completeTask(task, commands);
          if (accepted) run.progress = progress;
          isAccepted ??= accepted;
          if (accepted) this.options.reached('task recorded', this);
        });
        // If the Temporal server rejects the task, the cached workflow is ahead of its history.
        if (!isAccepted || !run.isOpen) await this.evict(run);
        this.options.reached('task done', this);
      });
    });
  }

  private async evict(run: Run): Promise<void> {
    const cached = this.cache.get(run.runId);
    this.cache.delete(run.runId);
    await cached?.dispose();
  }

  /** Runs the workflow tasks of a run one after another. */
  private runSequentially(run: Run, work: () => Promise<void>): Promise<unknown> {
    const before = this.queues.get(run.runId) ?? Promise.resolve();
    const next = before.then(() => (this.state === 'dead' ? undefined : work()));
    this.queues.set(run.runId, next);
    return next;
  }

  startActivity(activity: PendingActivity): void {
    if (!activity.start()) return;
    const { name, token } = activity;
    const info = attemptInfo(activity);
    this.options.reached(`${name} started`, this);
    this.whenAwake(() => {
      void this.execute(activity, info, token);
    });
  }

  private async execute(activity: PendingActivity, info: object, token: string): Promise<void> {
    const { name, options } = activity;
    if (this.takeCodecFailure('input')) {
      await this.report(() => activity.report(token, CODEC_FAILURE));
      return;
    }
    const beats = new Heartbeats(toMs(options.heartbeatTimeout), async (details) => {
      const answer = await this.callServer('beat', () => activity.heartbeat(token, details)).catch(
        () => 'lost' as const,
      );
      if (answer !== 'lost') cancelIfRequested(running, answer);
    });
    const running = sdkActivity(info, this.activities[name], this.client, (details) => beats.beat(details));
    const result = await running.run({ args: (options.arguments ?? []).map(fromPayload), headers: {} });
    beats.stop();
    if (result.willCompleteAsync) return;
    this.options.reached(`${name} ended`, this);
    const isBroken = this.takeCodecFailure('result');
    await this.report(() => {
      activity.report(token, isBroken ? CODEC_FAILURE : result, beats.latestDetails);
      this.options.reached(`${name} reported`, this);
    });
  }

  private takeCodecFailure(what: 'input' | 'result'): boolean {
    if (this.nextCodecFailure !== what) return false;
    this.nextCodecFailure = undefined;
    return true;
  }

  private async runLocally(run: Run, { seq, activityType, arguments: input }: LocalCall): Promise<Marker> {
    const { clock } = this.options;
    const call = { seq: seq ?? 0, name: activityType ?? '' };
    this.options.reached(`${call.name} started`, this);
    const info = activityInfo(run, call.seq, call.name, clock.now);
    const activity = sdkActivity(info, this.activities[call.name], this.client, () => undefined);
    const result = clock.runAs(this, () =>
      activity.run({ args: (input ?? []).map(fromPayload), headers: {} }),
    );
    const end = await Promise.race([result, clock.sleep(LOCAL_TIMEOUT_MS).then(() => undefined)]);
    return { seq: call.seq, endedAt: clock.now, resolution: localResolution(call, end) };
  }

  /** Reports to the Temporal server, and repeats the report until the call succeeds. */
  private async report(answer: () => void): Promise<void> {
    for (;;)
      try {
        await this.callServer('report', answer);
        return;
      } catch {
        await this.options.clock.sleep(REPORT_AGAIN_MS);
        await this.waitUntilAwake();
      }
  }
}

const CODEC_FAILURE = { failed: { failure: { message: 'the codec failed', applicationFailureInfo: {} } } };
