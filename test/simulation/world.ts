import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import { createActivities } from '../../src/activities';
import { POLL_LIMIT_MS } from '../../src/activities/poll-job';
import { followUpStart } from '../../src/core/starts';
import { FOLLOW_UP_WORKFLOW, QUERY_PROGRESS, TURN_WORKFLOW } from '../../src/core/names';
import type { WorkerSettings } from '../../src/core/activities';
import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { AgentService, JOB, PROJECT, PROMPT } from './agent-service';
import { BEGIN, VirtualClock } from './clock';
import { Luck } from './luck';
import { isOfMachines, Machines } from './machines';
import { type AskedUpdate, carryOut } from './people';
import type { Act } from './acts';
import type { Plan } from './plan';
import type { Run } from './temporal/run';
import { startRequest, TemporalServer } from './temporal/server';
import { replayed } from './worker/cached-run';
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

/** What the request of a plan says besides. */
export const REQUEST = { projectId: PROJECT, jobId: JOB, prompt: PROMPT, requestId: 'request-1' };

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
export type Facts = Pick<
  World,
  'plan' | 'service' | 'runs' | 'updates' | 'done' | 'log' | 'progress' | 'broken'
>;

/** One follow-up, its job, the machines and the people around it, on one clock. */
export class World {
  readonly luck: Luck;
  readonly clock: VirtualClock;
  readonly server: TemporalServer;
  readonly service: AgentService;
  readonly log: Entry[] = [];
  /** What was planned, and has found something to do it to. */
  readonly done: Act[] = [];
  readonly updates: AskedUpdate[] = [];
  /** Answers that nobody has yet, and resets that were planned for later: they may come when all is over. */
  waitsFor = 0;
  /** Bugs that have shown themselves: a task that failed, a replay that differs. */
  readonly broken: string[] = [];
  /** What a query has told of a run after its end; of every fourth world. */
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
    const { suggestFrom } = plan;
    this.server = new TemporalServer(this.clock, this.luck, { suggestFrom }, (run, words) => {
      if (words === 'sendMessage backs off') this.reached(words);
      else if (!words.endsWith('backs off')) this.say(run.runId, words);
    });
    const words = () => evicts.of('words', WORDS);
    this.service = new AgentService(this.clock, this.luck, plan, this.reached, JOB, words);
    this.machines = new Machines({
      clock: this.clock,
      luck: this.luck,
      server: this.server,
      workflows,
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
      this.server.start(this.startRequest());
      this.reached('started');
      await this.clock.run(() => this.isOver(), MOST_STEPS);
      for (const run of this.server.runs) if (run.isOpen) this.broken.push(`${run.runId} has not ended`);
      if (this.waitsFor > 0) this.broken.push('somebody waits for an answer');
      if (replays) await this.replayAll();
      return this;
    } finally {
      this.machines.killAll();
      this.clock.uninstall();
    }
  }

  say(who: string, what: string): void {
    this.log.push({ at: this.clock.now - BEGIN, who, what });
  }

  /** Those of the follow-up; the server has one of the turn that it takes, too. */
  get runs(): readonly Run[] {
    return this.server.runs.filter(({ start }) => start.workflowType === FOLLOW_UP_WORKFLOW);
  }

  /** The latest run of the follow-up. */
  get run(): Run {
    const run = this.runs.at(-1);
    if (run === undefined) throw new Error('nothing was started');
    return run;
  }

  startRequest() {
    const request = { ...REQUEST, ...this.plan.request };
    const { workflowId, memo, typedSearchAttributes } = followUpStart(request);
    return startRequest(
      workflowId,
      FOLLOW_UP_WORKFLOW,
      TASK_QUEUES.followUp,
      request,
      memo,
      typedSearchAttributes,
    );
  }

  /** A point in the story: what is planned for it happens. */
  private readonly reached = (point: string, worker?: SimulatedWorker): void => {
    const nth = (this.points.get(point) ?? 0) + 1;
    this.points.set(point, nth);
    this.say(worker?.name ?? 'world', point);
    if (point === 'post begun') this.checkTurn();
    for (const deed of this.plan.deeds) {
      if (deed.at !== point || deed.nth !== nth) continue;
      if (deed.afterMs === 0) this.do(deed.act, `at “${point}”`, worker);
      else this.later(deed.act, deed.afterMs, point, worker);
    }
  };

  /** A follow-up that waits sends in its turn only. What a run made by a reset sends, an operator has asked for. */
  private checkTurn(): void {
    const isReset = this.done.some(({ kind }) => kind === 'reset');
    const waits = this.plan.request.whenActive === 'wait' && this.run.isOpen && !isReset;
    const hasTurn = this.server.runs.some(
      ({ start, isOpen }) => isOpen && start.workflowType === TURN_WORKFLOW,
    );
    if (waits && !hasTurn) this.broken.push('a POST begins without the turn');
  }

  private later(act: Act, ms: number, point: string, worker?: SimulatedWorker): void {
    const counts = act.kind === 'reset' ? 1 : 0;
    this.waitsFor += counts;
    this.clock.after(ms, () => {
      this.do(act, `after “${point}”`, worker);
      this.waitsFor -= counts;
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
    if (!(isOfMachines(act) ? this.machines.do(act, worker) : carryOut(this, act))) return;
    this.done.push(act);
    this.say('deed', `${inWords(act)} ${when} ${where}`);
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
    const [message, { phase }] = args as [string, { readonly phase?: string }];
    if (phase === undefined) return;
    this.phase = phase;
    this.say(run.runId, message);
    this.reached(`phase ${phase}`);
  }

  private isOver(): boolean {
    if (this.clock.now - BEGIN > HORIZON_MS) return true;
    const { runs } = this.server;
    return runs.length > 0 && runs.every(({ isOpen }) => !isOpen) && this.waitsFor === 0;
  }

  /** Each history, from its beginning, gives the same commands. */
  private async replayAll(): Promise<void> {
    for (const run of this.runs.filter((each) => each.resetPoints().length > 0))
      try {
        this.progress.set(run, await replayed(this.workflows, run, this.clock, QUERY_PROGRESS));
      } catch (error) {
        this.broken.push(`replay of ${run.runId}: ${String(error)}`);
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
