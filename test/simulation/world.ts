import { inspect } from 'node:util';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import type { SinkCall } from '@temporalio/workflow';
import { createActivities } from '../../src/activities';
import { keyFromText } from '../../src/agent-api/secret-source';
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

/** The error texts of the agent service's responses, drawn independently of the status. */
const ERROR_TEXTS = [
  'This message is already being processed.',
  'A turn is in progress. Nothing was processed; send it again.',
  'no such job',
  'the key is expired',
  'slow down',
] as const;

/** Workflows that no worker runs. Their executions only store data on the Temporal server, and other workflows end them. */
export const LOCK_HOLDER_WORKFLOW = 'another client of the job';
export const WORKFLOWS_WITHOUT_WORKER: ReadonlySet<string> = new Set([
  CHUNK_WORKFLOW,
  JOB_LOCK_WORKFLOW,
  LOCK_HOLDER_WORKFLOW,
]);

/** The maximum number of failed workflow tasks of a run. The Temporal server sometimes rejects a task that ends a run. */
const MOST_FAILED_TASKS = 5;

/** The world ends after this number of failures, because a workflow task that fails is repeated indefinitely. */
export const MAX_FAILURES = 20;

/** The maximum duration of a world. Workflows that still run at this time wait indefinitely. */
const MAX_DURATION_MS = 5 * 86_400_000;

/** The maximum number of timers of a world. Correct worlds have fewer than a tenth of them, so more timers show an infinite loop. */
const MOST_STEPS = 200_000;

/** A line of the event log; `at` is in milliseconds since the start of the world. */
export interface LogEntry {
  readonly at: number;
  readonly who: string;
  readonly what: string;
}

/** An operation that a client or an operator performed. */
export interface PerformedOperation<Act, Answer = unknown> {
  readonly operation: Exclude<Act, MachineOperation>;
  /** The latest run at the time of the operation. */
  readonly run: Run | undefined;
  readonly at: number;
  endedAt: number;
  /** The result of an operation that waits for a result. */
  answer?: Answer;
  failed: boolean;
}

/** Whether an error is an expected result of a client call. Every other error is a bug. */
export function isClientError(error: unknown): boolean {
  return error instanceof FollowUpError && error.code !== 'UNEXPECTED_FAILURE';
}

/** An agent service, a Temporal server and workers on one virtual clock, and the planned operations. */
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
  /** Bugs that were found during the play: for example, a failed workflow task or a replay that differs. */
  readonly failures: string[] = [];
  /** The number of operations that are planned for later, and of calls without a response. */
  protected pendingCount = 0;
  /** The jobs, by the paths of the agent API. */
  protected readonly services: ReadonlyMap<string, AgentService>;
  /** The latest phase that any follow-up entered. */
  protected phase = 'none';
  private readonly evictionRandom: RandomSource;
  private readonly workers: SimulatedWorker[] = [];
  private readonly points = new Map<string, number>();

  /** @param isSecondPlay whether workers evict no workflow, and the agent service uses other error texts. The events must be the same. */
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

  /** Plays the plan until all workflows have ended. */
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
          this.failures.push(`too many tasks of ${workflowId} failed: ${failedTasks.join('; ')}`);
      }
      if (this.pendingCount > 0) this.failures.push('an operation or a call of a client has not ended');
      if (this.hasEnded()) await this.finish();
      else this.failures.push('the world has not ended within the maximum of time and steps');
      return this;
    } finally {
      for (const worker of this.workers) worker.kill();
      this.clock.uninstall();
    }
  }

  protected abstract startPlan(): void;
  protected abstract hasEnded(): boolean;
  protected abstract finish(): Promise<void>;

  /** The latest run of the follow-up or the batch of this world. */
  abstract get latest(): Run | undefined;

  /** Perform the operations of clients and operators. A handler returns a promise if its operation has a result, and false if it can't act. */
  protected abstract readonly operationHandlers: {
    readonly [Kind in Exclude<Act, MachineOperation>['kind']]: (
      operation: Extract<Act, { readonly kind: Kind }>,
    ) => unknown;
  };

  protected perform(operation: Exclude<Act, MachineOperation>): unknown {
    const operationHandlers: Readonly<Record<string, (operation: never) => unknown>> = this.operationHandlers;
    return operationHandlers[operation.kind]?.(operation as never);
  }

  /** Runs the checks of a point. @returns whether the event log shows the point */
  protected abstract passes(point: string): boolean;

  /** The query whose response is compared with the journal after each task of a run. */
  protected abstract queryOf(run: Run): string | undefined;

  /** Describes the state in which an operation happens, for the event log; null if the operation comes too late. */
  protected abstract where(operation: Act | MachineOperation): string | null;

  performedOfKind<Kind extends Act['kind']>(kind: Kind) {
    const all = this.performed.filter(({ operation }) => operation.kind === kind);
    return all as PerformedOperation<Extract<Act, { readonly kind: Kind }>, Answer>[];
  }

  protected appendLog(who: string, what: string): void {
    this.log.push({ at: this.clock.now - START_MS, who, what });
  }

  /** Performs the operations that are planned for this point. */
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

  /** @returns false if the operation could not act */
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
            if (service === undefined) throw new Error(`no job of this world has the path ${request.path}`);
            return service.exchangeFor(self)(dispatcher, request, ...rest);
          },
        });
        return { ...createActivities(agentApi, SETTINGS) };
      },
      logged: (run, call) => this.onWorkflowLog(run, call),
      failed: (run, reason) => this.failures.push(`a workflow task of ${run.workflowId} failed: ${reason}`),
      queryOf: (run) => this.queryOf(run),
      // Long histories are evicted less often, because their replay takes more time.
      shouldEvict: (run) =>
        !isSecondPlay && this.evictionRandom.chance('evict', 1 / (10 + run.events.length / 6)),
    });
    this.workers.push(worker);
  }
}

/** The kind of an operation and its details that are texts. */
function describeOperation(operation: { readonly kind: string }): string {
  const { kind, ...details } = operation;
  return [kind, ...Object.values(details).filter((value) => typeof value === 'string')].join(' ');
}
