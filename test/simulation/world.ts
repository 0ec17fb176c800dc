import { inspect } from 'node:util';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import type { SinkCall } from '@temporalio/workflow';
import { createActivities } from '../../src/activities';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import { CHUNK_WORKFLOW } from '../../src/batch/memo';
import { JOB_LOCK_WORKFLOW } from '../../src/contract/names';
import { FollowUpError } from '../../src/contract/follow-up-error';
import { isOfMachines, type MachineAct } from './acts';
import { AgentService } from './agent-service';
import { BEGIN, VirtualClock } from './clock';
import { Luck } from './luck';
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
const WORDS = [
  'This message is already being processed.',
  'A turn is in progress. Nothing was processed; send it again.',
  'no such job',
  'the key is expired',
  'slow down',
] as const;

/** No worker runs these workflows: they only keep something on the server, and other workflows end them. */
export const LOCK_HOLDER_WORKFLOW = 'another client of the job';
export const NEVER_RUN: ReadonlySet<string> = new Set([
  CHUNK_WORKFLOW,
  JOB_LOCK_WORKFLOW,
  LOCK_HOLDER_WORKFLOW,
]);

/** The server takes a task back now and then. */
const MOST_FAILED_TASKS = 5;

/** A workflow task that fails is tried again for ever. */
export const MOST_BROKEN = 20;

/** Nothing lasts longer: what still runs then waits for ever. */
const HORIZON_MS = 5 * 86_400_000;

/** Far more than a world takes: more steps mean an endless loop. */
const MOST_STEPS = 1_000_000;

/** One line of what has happened. */
export interface Entry {
  readonly at: number;
  readonly who: string;
  readonly what: string;
}

/** Something that people have done. */
export interface Done<Act, Answer = unknown> {
  readonly act: Exclude<Act, MachineAct>;
  /** The latest run at that time. */
  readonly run: Run | undefined;
  readonly at: number;
  endedAt: number;
  /** Of what waits for one. */
  answer?: Answer;
  failed: boolean;
}

/** An error of the client is an answer, any other one is a bug. */
export function isTold(error: unknown): boolean {
  return error instanceof FollowUpError && error.code !== 'UNEXPECTED_FAILURE';
}

/** The agent service, a Temporal server and workers on one clock; what is planned happens around them. */
export abstract class World<
  Plan extends WorldPlan<Act>,
  Act extends { readonly kind: string },
  Answer = unknown,
> {
  readonly luck: Luck;
  readonly clock: VirtualClock;
  readonly server: TemporalServer;
  readonly log: Entry[] = [];
  readonly done: Done<Act, Answer>[] = [];
  /** Bugs that have shown themselves: a task that failed, a replay that differs. */
  readonly broken: string[] = [];
  /** What is planned for later, and calls that have no answer yet: they may come when all is over. */
  protected waitsFor = 0;
  /** The jobs, by the paths of the agent API. */
  protected readonly services: ReadonlyMap<string, AgentService>;
  /** The latest one of any follow-up. */
  protected phase = 'none';
  private readonly evicts: Luck;
  private readonly workers: SimulatedWorker[] = [];
  private readonly points = new Map<string, number>();

  /** @param again the second time: workers forget no workflow, and the service says other words. That changes nothing. */
  constructor(
    readonly plan: Plan,
    protected readonly workflows: ReusableVMWorkflowCreator,
    protected readonly again = false,
  ) {
    this.luck = new Luck(plan.seed);
    this.clock = new VirtualClock(() => this.luck.next('random'));
    this.evicts = new Luck(plan.seed * 2 + (again ? 2 : 1));
    this.server = new TemporalServer(this.clock, this.luck, plan, (run, words) => this.heard(run, words));
    const words = () => this.evicts.of('words', WORDS);
    this.services = new Map(
      plan.jobs.map((job) => [
        `/v2/agent/${job.projectId}/job/${job.jobId}`,
        new AgentService(this.clock, this.luck, job, this.reached, words),
      ]),
    );
  }

  /** Lets the plan happen, until everything has ended. */
  async play(): Promise<this> {
    try {
      for (let count = 0; count < this.plan.workers; count += 1) this.addWorker();
      this.begin();
      this.reached('started');
      const isBroken = () => this.broken.length > MOST_BROKEN;
      await this.clock.run(
        () => this.isOver() || isBroken() || this.clock.now > BEGIN + HORIZON_MS,
        MOST_STEPS,
      );
      for (const { workflowId, start, isOpen, failedTasks } of this.server.runs) {
        if (isOpen && !NEVER_RUN.has(start.workflowType)) this.broken.push(`${workflowId} has not ended`);
        if (failedTasks.length > MOST_FAILED_TASKS)
          this.broken.push(`tasks of ${workflowId} have failed: ${failedTasks.join('; ')}`);
      }
      if (this.waitsFor > 0) this.broken.push('somebody waits for an answer');
      if (this.isOver()) await this.end();
      else this.broken.push('it loops without an end');
      return this;
    } finally {
      for (const worker of this.workers) worker.kill();
      this.clock.uninstall();
    }
  }

  protected abstract begin(): void;
  protected abstract isOver(): boolean;
  protected abstract end(): Promise<void>;

  /** The latest run of what the world is about. */
  abstract get latest(): Run | undefined;

  /** What people do. One returns a promise of its answer, or false if there was nothing to do it to. */
  protected abstract readonly acts: {
    readonly [Kind in Exclude<Act, MachineAct>['kind']]: (
      act: Extract<Act, { readonly kind: Kind }>,
    ) => unknown;
  };

  protected perform(act: Exclude<Act, MachineAct>): unknown {
    const acts: Readonly<Record<string, (act: never) => unknown>> = this.acts;
    return acts[act.kind]?.(act as never);
  }

  /** What else comes with a point. @returns whether a story tells it */
  protected abstract passes(point: string): boolean;

  /** The query whose response is compared with the journal after each task of a run. */
  protected abstract queryOf(run: Run): string | undefined;

  /** In which state of affairs something is done; null where it comes too late. */
  protected abstract where(act: Act | MachineAct): string | null;

  doneBy<Kind extends Act['kind']>(kind: Kind) {
    const all = this.done.filter(({ act }) => act.kind === kind);
    return all as Done<Extract<Act, { readonly kind: Kind }>, Answer>[];
  }

  protected say(who: string, what: string): void {
    this.log.push({ at: this.clock.now - BEGIN, who, what });
  }

  /** A point in the story: what is planned for it happens. */
  protected readonly reached = (point: string, worker?: SimulatedWorker): void => {
    const nth = (this.points.get(point) ?? 0) + 1;
    this.points.set(point, nth);
    if (this.passes(point)) this.say(worker?.name ?? 'world', point);
    for (const { at, nth: wanted, afterMs, act } of this.plan.deeds) {
      if (at !== point || wanted !== nth) continue;
      this.waitsFor += 1;
      const work = () => {
        this.waitsFor -= 1;
        this.do(act, `${afterMs === 0 ? 'at' : 'after'} “${point}”`, worker);
      };
      if (afterMs === 0) work();
      else this.clock.after(afterMs, work);
    }
  };

  /** @returns whether there was something to do it to */
  protected letPeople(act: Exclude<Act, MachineAct>): boolean {
    const { clock, latest: run } = this;
    const done: Done<Act, Answer> = { act, run, at: clock.now, endedAt: Infinity, failed: false };
    const answer = this.perform(act);
    if (answer === false) return false;
    this.done.push(done);
    if (!(answer instanceof Promise)) return true;
    this.waitsFor += 1;
    const told = (value: Answer) => {
      done.answer = value;
      return inspect(value ?? 'done', { depth: 1, breakLength: Infinity, maxArrayLength: 2 });
    };
    const failed = (error: unknown) => {
      if (!isTold(error)) this.broken.push(`${act.kind}: ${String((error as Error).stack)}`);
      done.failed = true;
      return String(error);
    };
    void (answer as Promise<Answer>).then(told, failed).then((words) => {
      this.say('people', `${inWords(act)}: ${words}`);
      this.waitsFor -= 1;
      done.endedAt = clock.now;
    });
    return true;
  }

  private heard(run: Run, words: string): void {
    if (words === 'sendMessage backs off') this.reached(words);
    else if (!words.endsWith('backs off')) this.say(run.runId, words);
  }

  private logged(run: Run, { ifaceName, args }: SinkCall): void {
    if (ifaceName !== '__temporal_logger') return;
    const [message, { phase }] = args as [string, { readonly phase?: string }];
    if (phase === undefined) return;
    this.phase = phase;
    this.say(run.runId, message);
    this.reached(`phase ${phase}`);
  }

  private do(
    act: Act | MachineAct,
    when: string,
    worker = this.workers.find(({ state }) => state === 'alive'),
  ): void {
    const where = this.where(act);
    if (where === null) return;
    const isDone = isOfMachines(act)
      ? this.toMachines(act, worker)
      : this.letPeople(act as Exclude<Act, MachineAct>);
    if (isDone) this.say('deed', `${inWords(act)} ${when}${where}`);
  }

  private toMachines(act: MachineAct, worker: SimulatedWorker | undefined): boolean {
    if (act.kind === 'server away') this.server.goAway(act.ms);
    else if (worker === undefined) return false;
    else if (act.kind === 'freeze') return worker.freeze(act.ms, act.suspended);
    else if (act.kind === 'lose') worker.loses = act.what;
    else if (act.kind === 'break') worker.breaks = act.what;
    else if (act.kind === 'wrong clock') worker.clockError = act.ms;
    else {
      if (worker.state === 'dead') return false;
      if (act.kind === 'kill') worker.kill();
      else worker.stop();
      this.clock.after(act.backAfterMs, () => this.addWorker());
    }
    return true;
  }

  private addWorker(): void {
    const { clock, luck, server, workflows, reached, again } = this;
    const worker: SimulatedWorker = new SimulatedWorker({
      ...{ name: `worker ${this.workers.length + 1}`, clock, luck, server, workflows, reached },
      activities: (self) => {
        const agentApi = createAgentApi({
          baseUrl: 'http://agent.example',
          apiKey: keyFromText('key_simulated-secret'),
          timeoutMs: HTTP_TIMEOUT_MS,
          exchange: (dispatcher, request, ...rest) => {
            const service = this.services.get(request.path.replace(/\/message$/, ''));
            if (service === undefined) throw new Error(`there is no ${request.path}`);
            return service.exchangeFor(self)(dispatcher, request, ...rest);
          },
        });
        return { ...createActivities(agentApi, SETTINGS) };
      },
      logged: (run, call) => this.logged(run, call),
      failed: (run, why) => this.broken.push(`a workflow task of ${run.workflowId} fails: ${why}`),
      queryOf: (run) => this.queryOf(run),
      // A long history takes long to replay.
      evicts: (run) => !again && this.evicts.chance('evict', 1 / (10 + run.events.length / 6)),
    });
    this.workers.push(worker);
  }
}

/** The kind, what it is about, and all else at the end. */
function inWords(act: { readonly kind: string }): string {
  const { kind, ...details } = act;
  return [kind, ...Object.values(details).filter((value) => typeof value === 'string')].join(' ');
}
