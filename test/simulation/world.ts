import { inspect } from 'node:util';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import type { SinkCall } from '@temporalio/workflow';
import { createActivities } from '../../src/activities';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import { CHUNK_WORKFLOW } from '../../src/batch/memo';
import { JOB_LOCK_WORKFLOW } from '../../src/contract/names';
import { FollowUpError } from '../../src/contract/follow-up-error';
import { isMachineOperation, type MachineOperation } from './operations';
import { AgentService } from './agent-service';
import { START_MS, VirtualClock } from './clock';
import { RandomSource } from './random-source';
import type { WorldPlan } from './plan';
import type { Run } from './temporal/run';
import { TemporalServer } from './temporal/server';
import { SimulatedWorker } from './worker/worker';

export const TASK_QUEUES = { followUp: 'follow-up', read: 'reads', send: 'sends' } as const;
const HTTP_TIMEOUT_MS = 30_000;
const SETTINGS = {
  ...{ readTaskQueue: TASK_QUEUES.read, sendTaskQueue: TASK_QUEUES.send },
  httpTimeoutMs: HTTP_TIMEOUT_MS,
};

/** What the service says with a refusal, whatever it refuses. */
const ERROR_TEXTS = [
  'This message is already being processed.',
  'A turn is in progress. Nothing was processed; send it again.',
  'no such job',
  'the key is expired',
  'slow down',
] as const;

/** No worker runs these workflows: they only keep something on the server, and other workflows end them. */
export const LOCK_HOLDER_WORKFLOW = 'another client of the job';
export const WORKFLOWS_WITHOUT_WORKER: ReadonlySet<string> = new Set([
  CHUNK_WORKFLOW,
  JOB_LOCK_WORKFLOW,
  LOCK_HOLDER_WORKFLOW,
]);

/** The server takes a task back now and then. */
const MOST_FAILED_TASKS = 5;

/** A workflow task that fails is tried again for ever. */
export const MAX_FAILURES = 20;

/** Nothing lasts longer: what still runs then waits for ever. */
const MAX_DURATION_MS = 5 * 86_400_000;

/** Far more than a world takes: more steps mean an endless loop. */
const MOST_STEPS = 1_000_000;

/** One line of what has happened. */
export interface LogEntry {
  readonly at: number;
  readonly who: string;
  readonly what: string;
}

/** Something that people have done. */
export interface PerformedOperation<Act, Answer = unknown> {
  readonly operation: Exclude<Act, MachineOperation>;
  /** The latest run at that time. */
  readonly run: Run | undefined;
  readonly at: number;
  endedAt: number;
  /** Of what waits for one. */
  answer?: Answer;
  failed: boolean;
}

/** An error of the client is an answer, any other one is a bug. */
export function isClientError(error: unknown): boolean {
  return error instanceof FollowUpError && error.code !== 'UNEXPECTED_FAILURE';
}

/** The agent service, a Temporal server and workers on one clock; what is planned happens around them. */
export abstract class World<
  Plan extends WorldPlan<Act>,
  Act extends { readonly kind: string },
  Answer = unknown,
> {
  readonly random: RandomSource;
  readonly clock: VirtualClock;
  readonly server: TemporalServer;
  readonly log: LogEntry[] = [];
  readonly performed: PerformedOperation<Act, Answer>[] = [];
  /** Bugs that have shown themselves: a task that failed, a replay that differs. */
  readonly failures: string[] = [];
  /** What is planned for later, and calls that have no answer yet: they may come when all is over. */
  protected pendingCount = 0;
  /** The jobs, by the paths of the agent API. */
  protected readonly services: ReadonlyMap<string, AgentService>;
  /** The latest one of any follow-up. */
  protected phase = 'none';
  private readonly evictionRandom: RandomSource;
  private readonly workers: SimulatedWorker[] = [];
  private readonly points = new Map<string, number>();

  /** @param isSecondPlay the second time: workers forget no workflow, and the service says other words. That changes nothing. */
  constructor(
    readonly plan: Plan,
    protected readonly workflows: ReusableVMWorkflowCreator,
    protected readonly isSecondPlay = false,
  ) {
    this.random = new RandomSource(plan.seed);
    this.clock = new VirtualClock(() => this.random.next('random'));
    this.evictionRandom = new RandomSource(plan.seed * 2 + (isSecondPlay ? 2 : 1));
    this.server = new TemporalServer(this.clock, this.random, plan, (run, words) =>
      this.onServerEvent(run, words),
    );
    const words = () => this.evictionRandom.pick('words', ERROR_TEXTS);
    this.services = new Map(
      plan.jobs.map((job) => [
        `/v2/agent/${job.projectId}/job/${job.jobId}`,
        new AgentService(this.clock, this.random, job, this.reached, words),
      ]),
    );
  }

  /** Lets the plan happen, until everything has ended. */
  async play(): Promise<this> {
    try {
      for (let count = 0; count < this.plan.workers; count += 1) this.addWorker();
      this.startPlan();
      this.reached('started');
      const isBroken = () => this.failures.length > MAX_FAILURES;
      await this.clock.run(
        () => this.hasEnded() || isBroken() || this.clock.now > START_MS + MAX_DURATION_MS,
        MOST_STEPS,
      );
      for (const { workflowId, start, isOpen, failedTasks } of this.server.runs) {
        if (isOpen && !WORKFLOWS_WITHOUT_WORKER.has(start.workflowType))
          this.failures.push(`${workflowId} has not ended`);
        if (failedTasks.length > MOST_FAILED_TASKS)
          this.failures.push(`tasks of ${workflowId} have failed: ${failedTasks.join('; ')}`);
      }
      if (this.pendingCount > 0) this.failures.push('somebody waits for an answer');
      if (this.hasEnded()) await this.finish();
      else this.failures.push('it loops without an end');
      return this;
    } finally {
      for (const worker of this.workers) worker.kill();
      this.clock.uninstall();
    }
  }

  protected abstract startPlan(): void;
  protected abstract hasEnded(): boolean;
  protected abstract finish(): Promise<void>;

  /** The latest run of what the world is about. */
  abstract get latest(): Run | undefined;

  /** What people do. One returns a promise of its answer, or false if there was nothing to do it to. */
  protected abstract readonly operationHandlers: {
    readonly [Kind in Exclude<Act, MachineOperation>['kind']]: (
      operation: Extract<Act, { readonly kind: Kind }>,
    ) => unknown;
  };

  protected perform(operation: Exclude<Act, MachineOperation>): unknown {
    const operationHandlers: Readonly<Record<string, (operation: never) => unknown>> = this.operationHandlers;
    return operationHandlers[operation.kind]?.(operation as never);
  }

  /** What else comes with a point. @returns whether a story tells it */
  protected abstract passes(point: string): boolean;

  /** The query whose response is compared with the journal after each task of a run. */
  protected abstract queryOf(run: Run): string | undefined;

  /** In which state of affairs something is done; null where it comes too late. */
  protected abstract where(operation: Act | MachineOperation): string | null;

  performedOfKind<Kind extends Act['kind']>(kind: Kind) {
    const all = this.performed.filter(({ operation }) => operation.kind === kind);
    return all as PerformedOperation<Extract<Act, { readonly kind: Kind }>, Answer>[];
  }

  protected appendLog(who: string, what: string): void {
    this.log.push({ at: this.clock.now - START_MS, who, what });
  }

  /** A point in the story: what is planned for it happens. */
  protected readonly reached = (point: string, worker?: SimulatedWorker): void => {
    const nth = (this.points.get(point) ?? 0) + 1;
    this.points.set(point, nth);
    if (this.passes(point)) this.appendLog(worker?.name ?? 'world', point);
    for (const { at, nth: wanted, afterMs, operation } of this.plan.operations) {
      if (at !== point || wanted !== nth) continue;
      this.pendingCount += 1;
      const work = () => {
        this.pendingCount -= 1;
        this.performAndLog(operation, `${afterMs === 0 ? 'at' : 'after'} “${point}”`, worker);
      };
      if (afterMs === 0) work();
      else this.clock.after(afterMs, work);
    }
  };

  /** @returns whether there was something to do it to */
  protected performAsClient(operation: Exclude<Act, MachineOperation>): boolean {
    const { clock, latest: run } = this;
    const done: PerformedOperation<Act, Answer> = {
      operation,
      run,
      at: clock.now,
      endedAt: Infinity,
      failed: false,
    };
    const answer = this.perform(operation);
    if (answer === false) return false;
    this.performed.push(done);
    if (!(answer instanceof Promise)) return true;
    this.pendingCount += 1;
    const recordAnswer = (value: Answer) => {
      done.answer = value;
      return inspect(value ?? 'done', { depth: 1, breakLength: Infinity, maxArrayLength: 2 });
    };
    const recordError = (error: unknown) => {
      if (!isClientError(error)) this.failures.push(`${operation.kind}: ${String((error as Error).stack)}`);
      done.failed = true;
      return String(error);
    };
    void (answer as Promise<Answer>).then(recordAnswer, recordError).then((words) => {
      this.appendLog('client', `${describeOperation(operation)}: ${words}`);
      this.pendingCount -= 1;
      done.endedAt = clock.now;
    });
    return true;
  }

  private onServerEvent(run: Run, words: string): void {
    if (words === 'sendMessage backs off') this.reached(words);
    else if (!words.endsWith('backs off')) this.appendLog(run.runId, words);
  }

  private onWorkflowLog(run: Run, { ifaceName, args }: SinkCall): void {
    if (ifaceName !== '__temporal_logger') return;
    const [message, { phase }] = args as [string, { readonly phase?: string }];
    if (phase === undefined) return;
    this.phase = phase;
    this.appendLog(run.runId, message);
    this.reached(`phase ${phase}`);
  }

  private performAndLog(
    operation: Act | MachineOperation,
    when: string,
    worker = this.workers.find(({ state }) => state === 'alive'),
  ): void {
    const where = this.where(operation);
    if (where === null) return;
    const isDone = isMachineOperation(operation)
      ? this.performOnMachine(operation, worker)
      : this.performAsClient(operation as Exclude<Act, MachineOperation>);
    if (isDone) this.appendLog('operation', `${describeOperation(operation)} ${when}${where}`);
  }

  private performOnMachine(operation: MachineOperation, worker: SimulatedWorker | undefined): boolean {
    if (operation.kind === 'server unavailable') this.server.becomeUnavailable(operation.ms);
    else if (worker === undefined) return false;
    else if (operation.kind === 'freeze') return worker.freeze(operation.ms, operation.suspended);
    else if (operation.kind === 'lose') worker.nextCallLoss = operation.what;
    else if (operation.kind === 'break') worker.nextCodecFailure = operation.what;
    else if (operation.kind === 'wrong clock') worker.clockErrorMs = operation.ms;
    else {
      if (worker.state === 'dead') return false;
      if (operation.kind === 'kill') worker.kill();
      else worker.stop();
      this.clock.after(operation.backAfterMs, () => this.addWorker());
    }
    return true;
  }

  private addWorker(): void {
    const { clock, random, server, workflows, reached, isSecondPlay } = this;
    const worker: SimulatedWorker = new SimulatedWorker({
      ...{ name: `worker ${this.workers.length + 1}`, clock, random, server, workflows, reached },
      activities: (self) => {
        const agentApi = createAgentApi({
          baseUrl: 'http://agent.example',
          apiKey: keyFromText('key_simulated-secret'),
          timeoutMs: HTTP_TIMEOUT_MS,
          sendHttpRequest: (dispatcher, request, ...rest) => {
            const service = this.services.get(request.path.replace(/\/message$/, ''));
            if (service === undefined) throw new Error(`there is no ${request.path}`);
            return service.exchangeFor(self)(dispatcher, request, ...rest);
          },
        });
        return { ...createActivities(agentApi, SETTINGS) };
      },
      logged: (run, call) => this.onWorkflowLog(run, call),
      failed: (run, why) => this.failures.push(`a workflow task of ${run.workflowId} fails: ${why}`),
      queryOf: (run) => this.queryOf(run),
      // A long history takes long to replay.
      shouldEvict: (run) =>
        !isSecondPlay && this.evictionRandom.chance('evict', 1 / (10 + run.events.length / 6)),
    });
    this.workers.push(worker);
  }
}

/** The kind, what it is about, and all else at the end. */
function describeOperation(operation: { readonly kind: string }): string {
  const { kind, ...details } = operation;
  return [kind, ...Object.values(details).filter((value) => typeof value === 'string')].join(' ');
}
