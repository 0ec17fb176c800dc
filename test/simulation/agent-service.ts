import { Context } from '@temporalio/activity';
import type {
  HttpResponse,
  HttpResult,
  sendHttpRequest as realExchange,
  HttpRequestOptions,
} from '../../src/agent-api/http-request';
import { type AgentJob } from '../../src/contract/job';
import { JobLife } from '../../sandbox/job-life';
import type { VirtualClock } from './clock';
import type { RandomSource } from './random-source';
import type { PlannedJob, Fault, FaultEffect } from './plan';
import type { SimulatedWorker } from './worker/worker';

/** One request as the service and its client knew it. Times in milliseconds since the epoch; null for what never came. */
export class Request {
  /** When its first byte left. */
  firstByteAt: number | null = null;
  reachedAt: number | null = null;
  /** When its message was processed. */
  processedAt: number | null = null;
  /** A status, or what else came back. */
  answer: string | null = null;
  retryAfter: string | null = null;
  respondedAt: number | null = null;
  /** When the client had its end; a worker that has died has none. */
  receivedAt: number | null = null;
  /** The job that a read has shown. */
  shown: AgentJob | null = null;

  /**
   * @param point what it is for, in the names of the points of a story: a look right before a POST, or a read of another activity
   * @param attempt the one of the activity that has asked
   */
  constructor(
    readonly number: number,
    readonly point: 'post' | 'look' | 'poll' | 'read',
    readonly attempt: string,
    readonly worker: string,
    readonly runId: string,
    readonly requestedAt: number,
  ) {}
}

/** One way, mostly; how much longer a slow one takes, and how many are slow: a message is often processed slowly. */
const WAY_MS = { least: 1, usual: 120, slow: 6_000, slowShare: 0.06, slowShareOfPost: 0.15 };

/** The agent service with its one job, at the border of HTTP: what undici would have told. */
export class AgentService {
  readonly requests: Request[] = [];
  readonly life: JobLife;
  private links = 0;

  constructor(
    private readonly clock: VirtualClock,
    private readonly random: RandomSource,
    private readonly job: PlannedJob,
    private readonly reached: (point: string, worker?: SimulatedWorker) => void,
    private readonly errorText: () => string,
  ) {
    const { jobId, status, hasLink, activeMs, turns, whileActive } = job;
    const createdAt = new Date(clock.now).toISOString();
    const start = {
      ...{ id: jobId, status, source: { repository: 'example/handbook', ref: null }, model: 'writer-1' },
      ...{ prLink: hasLink ? 'https://code.example/pulls/0' : null, createdAt },
      archivedAt: status === 'archived' ? createdAt : null,
    };
    const openPullRequest = () => `https://code.example/pulls/${(this.links += 1)}`;
    const turnRandom = () => this.random.next('turn');
    this.life = new JobLife(start, {
      ...{ now: () => clock.now, random: turnRandom, turnMs: 60_000, whileActive, openPullRequest },
      // The turn of a job that is active before is not one of ours.
      plans: status === 'active' ? [{ durationMs: activeMs }, ...turns] : turns,
    });
  }

  /** As `exchange` of the agent API, for one worker. */
  exchangeFor(worker: SimulatedWorker): typeof realExchange {
    return (_dispatcher, { method, body }, limits) =>
      new Promise<HttpResult>((resolve) => {
        if (worker.state === 'dead') return;
        const request = this.newRequest(method === 'POST', worker.name);
        const fail = (label: string) =>
          end({
            kind: 'no answer',
            started: request.firstByteAt !== null,
            failure: { label, message: label },
          });
        const end = (exchange: HttpResult) => {
          if (request.receivedAt !== null) return;
          request.receivedAt = this.clock.now;
          for (const timer of timers) clearTimeout(timer);
          this.reached(`${request.point} heard`, worker);
          resolve(exchange);
        };
        // Those of the process: they stand still with it.
        const timers = [
          setTimeout(() => fail('timeout'), limits.timeoutMs),
          setTimeout(() => {
            if (request.firstByteAt === null) fail('connect_timeout');
          }, limits.connectTimeoutMs),
        ];
        void this.transmit(request, body as string, worker, limits).then((answer) => {
          if (typeof answer === 'string') fail(answer);
          else if (answer !== null) end(answer);
        });
      });
  }

  /** One request on its way, and its answer; a label for what comes instead; null where the time limit ends it. */
  private async transmit(
    request: Request,
    body: string,
    worker: SimulatedWorker,
    { beforeFirstByte }: HttpRequestOptions,
  ): Promise<HttpResponse | string | null> {
    const { point } = request;
    const way = () => {
      const slowShare = point === 'post' ? WAY_MS.slowShareOfPost : WAY_MS.slowShare;
      return this.clock.sleep(this.random.delayMs(point, 'takes', { ...WAY_MS, slowShare }));
    };
    const effect = this.faultEffectFor(point === 'post' ? 'post' : 'get');
    this.reached(`${point} asked`, worker);
    // The connection is made by the worker's kernel, also while the process stands still.
    await way();
    await worker.waitUntilAwake();
    if (request.receivedAt !== null) return null;
    if (effect?.kind === 'refused') return 'ECONNREFUSED';
    if (effect?.kind === 'misconfigured') return 'UND_ERR_INVALID_ARG';
    if (beforeFirstByte?.() !== undefined) return 'held_back';
    request.firstByteAt = this.clock.now;
    this.reached(`${point} begun`, worker);
    await way();
    request.reachedAt = this.clock.now;
    this.reached(`${point} reached`, worker);
    const answer = this.respond(request, body, effect, worker);
    if (answer !== null) request.respondedAt = this.clock.now;
    await way();
    await worker.waitUntilAwake();
    return answer;
  }

  private newRequest(isPost: boolean, worker: string): Request {
    const { activityType, workflowExecution, base64TaskToken } = Context.current().info;
    const point = isPost ? 'post' : (POINTS[activityType] ?? 'read');
    const of = [base64TaskToken, worker, workflowExecution?.runId ?? '', this.clock.now] as const;
    const request = new Request(this.requests.length + 1, point, ...of);
    this.requests.push(request);
    return request;
  }

  private faultEffectFor(method: Fault['method']): FaultEffect | undefined {
    const nth = this.requests.filter(({ point }) => (point === 'post') === (method === 'post')).length - 1;
    return this.job.faults.find(
      (fault) =>
        fault.method === method &&
        nth >= fault.after &&
        nth < fault.after + fault.count &&
        (!fault.isIntermittent || (nth - fault.after) % 2 === 0),
    )?.effect;
  }

  /** @returns null for silence */
  private respond(request: Request, body: string, effect: FaultEffect | undefined, worker: SimulatedWorker) {
    if (request.point === 'post' && effect?.processed !== false) {
      request.processedAt = this.clock.now;
      this.life.receive((JSON.parse(body) as { readonly prompt: string }).prompt);
      this.reached('post processed', worker);
    }
    const { kind = 'job', status = 200, page = false, retryAfter } = effect ?? {};
    const headers = { location: undefined, retryAfter, date: undefined };
    const answer = (value: unknown, isHtml = false): HttpResponse => {
      return { kind: 'answer', status, headers, body: { isHtml, value }, failure: null };
    };
    request.answer = kind;
    switch (kind) {
      case 'timeout':
        return null;
      case 'reset':
        return 'UND_ERR_SOCKET';
      case 'status': {
        request.answer = `${page ? 'page' : 'http'}_${status}`;
        request.retryAfter = retryAfter ?? null;
        const words = this.errorText();
        return page ? answer(words) : answer({ error: words });
      }
      case 'page':
        return answer(undefined, true);
      case 'no job':
        return answer({ ok: true });
      case 'another job':
        return answer({ ...this.life.job(), ...ANOTHER_JOB });
      default: {
        const job = request.point === 'post' ? this.life.job() : this.visibleJob();
        request.shown = kind === 'unknown word' ? { ...job, status: 'expired' } : job;
        request.answer = 'job';
        return answer(request.shown);
      }
    }
  }

  /** The job as one of the replicas has it; the link comes some time after the turn. */
  private visibleJob(): AgentJob {
    const now = this.life.read();
    const lag = this.random.between('lag', 0, this.job.lagMs);
    const job = lag === 0 ? now : (this.life.jobAt(this.clock.now - lag) ?? now);
    const since = this.life.terminalSince();
    const isLate = since !== null && this.clock.now < since + this.job.linkLateMs;
    return isLate && job.status === 'completed' ? { ...job, prLink: null } : job;
  }
}

const POINTS: Readonly<Record<string, Request['point']>> = { sendMessage: 'look', pollJob: 'poll' };

/** The job of somebody else. */
const ANOTHER_JOB = { id: 'job-2', status: 'completed', prLink: 'https://code.example/pulls/of-others' };
