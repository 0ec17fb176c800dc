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

/** What a worker is made of, and whom it tells what it does. */
export interface WorkerOptions {
  readonly name: string;
  readonly clock: VirtualClock;
  readonly random: RandomSource;
  readonly server: TemporalServer;
  readonly workflows: ReusableVMWorkflowCreator;
  /** Made in the worker's process: they may keep something in it, and read its clock. */
  readonly activities: (worker: SimulatedWorker, shutdown: AbortSignal) => Activities;
  readonly reached: (point: string, worker: SimulatedWorker) => void;
  readonly logged: (run: Run, call: SinkCall) => void;
  readonly failed: (run: Run, why: string) => void;
  /** The query whose response is kept with a run after each of its tasks; undefined if none is. */
  readonly queryOf: (run: Run) => string | undefined;
  /** Whether the cached run is to be evicted before its next task. */
  readonly shouldEvict: (run: Run) => boolean;
}

/** One way to the server; and how much longer a slow one takes. */
const CALL_MS = { usual: 15, slow: 4_000, slowShare: 0.03 };

/** The SDK's core repeats a report that it could not deliver. */
const REPORT_AGAIN_MS = 500;

/** Start-to-close of a local activity. */
const LOCAL_TIMEOUT_MS = 5_000;

/**
 * A worker process: it polls for tasks, runs the real activity functions by the SDK's own `Activity`, and the workflows in
 * the SDK's sandbox. It can die, stand still, and lose its connection for one call.
 */
export class SimulatedWorker implements Process {
  state: 'alive' | 'frozen' | 'stopping' | 'dead' = 'alive';
  clockErrorMs = 0;
  suspendedMs = 0;
  /** What is lost of its next call to the server. */
  nextCallLoss: 'request' | 'response' | undefined;
  /** What can't be decoded or encoded of its next activity, as with a codec that fails once. */
  nextCodecFailure: 'input' | 'result' | undefined;
  readonly client: Client;
  private readonly shutdown = new AbortController();
  private readonly activities: Activities;
  readonly cache = new Map<string, CachedRun>();
  private readonly heldWork: (() => void)[] = [];
  private readonly queues = new Map<string, Promise<unknown>>();

  constructor(private readonly options: WorkerOptions) {
    this.client = createClient(options.server, (method, answer) => this.callServer(method, answer), {
      // Its own, so that what a process keeps of the server by name stays within it.
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

  /** A suspended machine loses the time on its monotonic clock; a stopped process does not. */
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

  /** As after SIGTERM: it takes no more tasks, and what is under way ends. */
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

  /** A call to the server and back. What the server does of it is done whatever becomes of the worker. */
  callServer<T>(method: string, answer: () => T): Promise<T> {
    const { server, clock, random, reached } = this.options;
    const lost = this.nextCallLoss;
    this.nextCallLoss = undefined;
    const afterWay = (work: () => void) => clock.after(random.delayMs(method, 'takes', CALL_MS), work);
    return new Promise((resolve, reject) => {
      // What was under way in a process that is dead goes nowhere.
      if (this.state === 'dead') return;
      const back = (end: () => void) => afterWay(() => this.whenAwake(end));
      const isLost = () => reject(grpcError(UNAVAILABLE, 'the connection to the server was lost'));
      if (lost === 'request') {
        back(isLost);
        return;
      }
      reached(`${method} requested`, this);
      afterWay(() => {
        server.whenAvailable(() => {
          let end: () => void;
          try {
            const value = answer();
            reached(`${method} recorded`, this);
            end = () => resolve(value);
          } catch (error) {
            const why = error as Error;
            end = () => reject(why);
          }
          back(lost === 'response' ? isLost : end);
        });
      });
    });
  }

  runWorkflowTask(run: Run): void {
    const task = run.startTask();
    if (task === undefined) return;
    // What comes while the task is under way is not yet part of it.
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
        // It may be an error of the sandbox's own realm.
        if ('message' in commands) {
          if (this.state === 'dead') return;
          const why = `${commands instanceof NonDeterminism ? 'non-determinism: ' : ''}${commands.message}`;
          this.options.failed(run, why);
          await this.evict(run);
          await this.report(() => run.failTask(task, why));
          return;
        }
        const query = commands.some(isClosing) ? undefined : this.options.queryOf(run);
        if (this.state === 'dead') return;
        const progress = query && (await cached.query(query));
        // The first one of several reports counts.
        let isTaken: boolean | undefined;
        await this.report(() => {
          const taken = run.completeTask(task, commands);
          if (taken) run.progress = progress;
          isTaken ??= taken;
          if (taken) this.options.reached('task recorded', this);
        });
        // A task that the server does not take leaves the workflow ahead of its history.
        if (!isTaken || !run.isOpen) await this.evict(run);
        this.options.reached('task done', this);
      });
    });
  }

  private async evict(run: Run): Promise<void> {
    const cached = this.cache.get(run.runId);
    this.cache.delete(run.runId);
    await cached?.dispose();
  }

  /** One task of a run at a time. */
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
    const of = { seq: seq ?? 0, name: activityType ?? '' };
    this.options.reached(`${of.name} started`, this);
    const info = activityInfo(run, of.seq, of.name, clock.now);
    const activity = sdkActivity(info, this.activities[of.name], this.client, () => undefined);
    const result = clock.runAs(this, () =>
      activity.run({ args: (input ?? []).map(fromPayload), headers: {} }),
    );
    const end = await Promise.race([result, clock.sleep(LOCAL_TIMEOUT_MS).then(() => undefined)]);
    return { seq: of.seq, endedAt: clock.now, resolution: localResolution(of, end) };
  }

  /** Reports to the server, again and again until it has heard of it. */
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
