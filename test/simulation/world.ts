import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import { createActivities, POLL_LIMIT_MS } from '../../src/activities';
import { followUpStart } from '../../src/core/starts';
import { FOLLOW_UP_WORKFLOW, QUERY_PROGRESS, TURN_WORKFLOW } from '../../src/core/names';
import type { WorkerSettings } from '../../src/core/activities';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { encodeUnifiedSearchAttributes } from '@temporalio/common/lib/converter/payload-search-attributes';
import { AgentService, JOB, PROJECT, PROMPT } from './agent-service';
import { BEGIN, VirtualClock } from './clock';
import { Luck } from './luck';
import { isOfMachines, Machines } from './machines';
import { People } from './people';
import type { Act } from './acts';
import type { Plan } from './plan';
import { type Fields, fromPayload, toPayload } from './temporal/history';
import type { Run } from './temporal/run';
import { TemporalServer } from './temporal/server';
import { CachedRun } from './worker/cached-run';
import type { Activities, SimulatedWorker } from './worker/worker';
import type { SinkCall } from './worker/workflow-code';

export const TASK_QUEUES = { followUp: 'follow-up', read: 'reads', send: 'sends' } as const;
export const HTTP_TIMEOUT_MS = 30_000;

export const SETTINGS: WorkerSettings = {
  readTaskQueue: TASK_QUEUES.read,
  sendTaskQueue: TASK_QUEUES.send,
  httpTimeoutMs: HTTP_TIMEOUT_MS,
  pollLimitMs: POLL_LIMIT_MS,
};

export const REQUEST_ID = 'request-1';

/** What the service says with a refusal, whatever it refuses. */
const WORDS = [
  'This message is already being processed.',
  'A turn is in progress. Nothing was processed; send it again.',
  'no such job',
  'the key is expired',
  'slow down',
] as const;

/** Nothing lasts longer: what still runs then waits for ever. */
const HORIZON_MS = 5 * 86_400_000;

/** One line of what has happened. */
export interface Entry {
  readonly at: number;
  readonly who: string;
  readonly what: string;
}

/** What is known of a world once all in it has ended. */
export interface Facts {
  readonly plan: Plan;
  readonly service: AgentService;
  readonly runs: readonly Run[];
  readonly people: People;
  readonly log: readonly Entry[];
  /** What a query has told of a run after its end; of every fourth world. */
  readonly progress: ReadonlyMap<Run, unknown>;
  /** Bugs that have shown themselves: a task that failed, a replay that differs. */
  readonly broken: readonly string[];
}

/** One follow-up, its job, the machines and the people around it, on one clock. */
export class World {
  readonly luck: Luck;
  readonly clock: VirtualClock;
  readonly server: TemporalServer;
  readonly service: AgentService;
  readonly people: People;
  readonly log: Entry[] = [];
  readonly broken: string[] = [];
  readonly progress = new Map<Run, unknown>();
  private readonly machines: Machines;
  private readonly points = new Map<string, number>();
  private phase = 'none';

  /** @param evictions a seed: when a worker forgets and replays a workflow, and the service's words. They change nothing. */
  constructor(
    readonly plan: Plan,
    private readonly workflows: ReusableVMWorkflowCreator,
    evictions: number,
  ) {
    this.luck = new Luck(plan.seed);
    this.clock = new VirtualClock(() => this.luck.next('random'));
    const evicts = new Luck(plan.seed * 2 + evictions);
    this.server = new TemporalServer(
      this.clock,
      this.luck,
      { suggestFrom: plan.suggestFrom },
      (run, words) => {
        if (words === 'sendMessage backs off') this.reached(words);
        else if (!words.endsWith('backs off')) this.say(run.runId, words);
      },
    );
    const reached = (point: string, worker?: SimulatedWorker) => this.reached(point, worker);
    const words = () => evicts.of('words', WORDS);
    this.service = new AgentService(this.clock, this.luck, plan, reached, JOB, words);
    this.people = new People(this);
    this.machines = new Machines({
      ...{ clock: this.clock, luck: this.luck, server: this.server, workflows },
      activities: (self, shutdown) => this.activitiesOf(self, shutdown),
      reached: (point, self) => this.reached(point.replace(/^heartbeat/, 'permission'), self),
      logged: (run, call) => this.heard(run, call),
      failed: (run, why) => this.broken.push(`a workflow task of ${run.runId} fails: ${why}`),
      // A long history takes long to replay.
      evicts: (run) => evicts.chance('evict', 1 / (10 + run.events.length / 8)),
    });
  }

  /**
   * Lets the plan happen, until everything has ended.
   *
   * @param replays whether each history is replayed as a whole then
   */
  async play(replays: boolean): Promise<Facts> {
    try {
      for (let count = 0; count < this.plan.workers; count += 1) this.machines.add();
      this.people.start();
      this.reached('started');
      await this.clock.run(() => this.isOver(), MOST_STEPS);
      this.noteWhatWaits();
      if (replays) await this.replayAll();
      const { plan, service, runs, people, log, broken, progress } = this;
      return { plan, service, runs, people, log, broken, progress };
    } finally {
      this.machines.killAll();
      this.clock.uninstall();
    }
  }

  say(who: string, what: string): void {
    this.log.push({ at: this.clock.now - BEGIN, who, what });
  }

  /** Those of the follow-up; the server has one of the turn that it takes, too. */
  private get runs(): readonly Run[] {
    return this.server.runs.filter(({ start }) => start.workflowType === FOLLOW_UP_WORKFLOW);
  }

  /** The latest run of the follow-up. */
  get run(): Run {
    const run = this.runs.at(-1);
    if (run === undefined) throw new Error('nothing was started');
    return run;
  }

  /** A point in the story: what is planned for it happens. */
  reached(point: string, worker?: SimulatedWorker): void {
    const nth = (this.points.get(point) ?? 0) + 1;
    this.points.set(point, nth);
    this.say(worker?.name ?? 'world', point);
    if (point === 'post begun') this.checkTurn();
    for (const deed of this.plan.deeds) {
      if (deed.at !== point || deed.nth !== nth) continue;
      if (deed.afterMs === 0) this.do(deed.act, `at “${point}”`, worker);
      else this.later(deed.act, deed.afterMs, point, worker);
    }
  }

  /** A follow-up that waits sends in its turn only. What a run made by a reset sends, an operator has asked for. */
  private checkTurn(): void {
    const waits =
      this.plan.request.whenActive === 'wait' && this.run.isOpen && this.people.resets.length === 0;
    const hasTurn = this.server.runs.some(
      ({ start, isOpen }) => isOpen && start.workflowType === TURN_WORKFLOW,
    );
    if (waits && !hasTurn) this.broken.push('a POST begins without the turn');
  }

  /** A reset may come when all is over: it is waited for. */
  private later(act: Act, ms: number, point: string, worker?: SimulatedWorker): void {
    const counts = act.kind === 'reset' ? 1 : 0;
    this.people.waitsFor += counts;
    this.clock.after(ms, () => {
      this.do(act, `after “${point}”`, worker);
      this.people.waitsFor -= counts;
    });
  }

  private do(act: Act, when: string, worker = this.machines.any): void {
    const isClosed = this.runs.at(-1)?.isOpen === false;
    if (isClosed && act.kind !== 'reset') return;
    const phase = isClosed ? 'its end' : this.phase;
    const pausedSend = [...this.run.activities.values()].some(
      ({ name, paused }) => name === 'sendMessage' && paused,
    );
    const where = `in phase ${phase}${pausedSend ? ' with a paused send' : ''}`;
    if (this.carryOut(act, worker)) this.say('deed', `${inWords(act)} ${when} ${where}`);
  }

  /** @returns whether there was something to do it to */
  private carryOut(act: Act, worker: SimulatedWorker | undefined): boolean {
    if (isOfMachines(act)) return this.machines.do(act, worker);
    switch (act.kind) {
      case 'hold queue':
        this.server.hold(act.queue === 'sends' ? TASK_QUEUES.send : TASK_QUEUES.read, act.ms);
        return true;
      case 'turn of others':
        this.service.life.receive('of others', {
          durationMs: act.ms,
          outcome: act.outcome,
        });
        return true;
      case 'change job':
        this.service.life.change({ status: act.status });
        return true;
      default:
        return this.people.do(act);
    }
  }

  startOptions() {
    const request = {
      projectId: PROJECT,
      jobId: JOB,
      prompt: PROMPT,
      requestId: REQUEST_ID,
      ...this.plan.request,
    };
    const { workflowId, memo, typedSearchAttributes } = followUpStart(request);
    return {
      ...{
        workflowId,
        workflowType: FOLLOW_UP_WORKFLOW,
        taskQueue: TASK_QUEUES.followUp,
        input: [toPayload(request)],
      },
      memo: Object.fromEntries(Object.entries(memo).map(([name, value]) => [name, toPayload(value)])),
      searchAttributes: encodeUnifiedSearchAttributes(undefined, typedSearchAttributes) as Fields,
    };
  }

  private activitiesOf(worker: SimulatedWorker, shutdown: AbortSignal): Activities {
    const agentApi = createAgentApi({
      baseUrl: 'http://agent.example',
      apiKey: keyFromText('key_simulated-secret'),
      timeoutMs: HTTP_TIMEOUT_MS,
      exchange: this.service.exchangeFor(worker),
    });
    const inProcess = { maximum: this.plan.inProcessPolls, shutdown };
    return { ...createActivities(agentApi, SETTINGS, inProcess) };
  }

  private heard(run: Run, { ifaceName, args }: SinkCall): void {
    if (ifaceName !== '__temporal_logger') return;
    const [message, attributes] = args as [string, { readonly phase?: string }];
    if (attributes.phase === undefined) return;
    this.phase = attributes.phase;
    this.say(run.runId, message);
    this.reached(`phase ${attributes.phase}`);
  }

  private isOver(): boolean {
    const { now } = this.clock;
    if (now - BEGIN > HORIZON_MS) return true;
    return (
      this.server.runs.length > 0 &&
      this.server.runs.every(({ isOpen }) => !isOpen) &&
      this.people.waitsFor === 0
    );
  }

  private noteWhatWaits(): void {
    for (const run of this.server.runs) if (run.isOpen) this.broken.push(`${run.runId} has not ended`);
    if (this.people.waitsFor > 0) this.broken.push('somebody waits for an answer');
  }

  /** Each history, from its beginning, gives the same commands. */
  private async replayAll(): Promise<void> {
    for (const run of this.runs) {
      const copy = new CachedRun(this.workflows, run.start, this.clock, () => undefined);
      try {
        await copy.replay(run.events);
        this.progress.set(run, fromPayload((await copy.query(QUERY_PROGRESS, [])).result));
      } catch (error) {
        this.broken.push(`replay of ${run.runId}: ${String(error)}`);
      }
      await copy.dispose();
    }
  }
}

function inWords(act: Act): string {
  if (act.kind === 'decide') return `decide ${act.decision}`;
  if (act.kind === 'change job') return `change job to ${act.status}`;
  return 'what' in act ? `${act.kind} ${act.what}` : act.kind;
}

/** Far more than a world takes: more steps mean an endless loop. */
const MOST_STEPS = 50_000;
