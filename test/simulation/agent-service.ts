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

/** A request, as the agent service and the worker see it. Times are in milliseconds since the epoch, or null if the event never happened. */
export class Request {
  /** When the worker sent the first byte. */
  firstByteAt: number | null = null;
  reachedAt: number | null = null;
  /** When the agent service processed the message. */
  processedAt: number | null = null;
  /** The label of the response: `job`, `http_503`, `page_404`, or the kind of the fault. */
  answer: string | null = null;
  retryAfter: string | null = null;
  respondedAt: number | null = null;
  /** When the worker received the response or the error; null if the worker died before. */
  receivedAt: number | null = null;
  /** The job in the response. */
  shown: AgentJob | null = null;

  /**
   * @param point the purpose of the request: a POST, the baseline read before it, a read of `pollJob`, or a read of `getJob`
   * @param attempt the token of the activity attempt that made the request
   */
  constructor(
    readonly number: number,
    readonly point: 'post' | 'baseline' | 'poll' | 'read',
    readonly attempt: string,
    readonly worker: string,
    readonly runId: string,
    readonly requestedAt: number,
  ) {}
}

/** The delay of each step of a request, in milliseconds. POSTs are slow more often, because a message may be processed slowly. */
const STEP_MS = { least: 1, usual: 120, slow: 6_000, slowShare: 0.06, slowShareOfPost: 0.15 };

/** The agent service with one job. This class replaces `sendHttpRequest`, so a worker receives the same results as from undici. */
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
      // If the job is active at the start, its first turn does not belong to a follow-up.
      plans: status === 'active' ? [{ durationMs: activeMs }, ...turns] : turns,
    });
  }

  /** Returns the `sendHttpRequest` of one worker. */
  exchangeFor(worker: SimulatedWorker): typeof realExchange {
    return (_dispatcher, { method, body }, limits) =>
      new Promise<HttpResult>((resolve) => {
        if (worker.state === 'dead') return;
        const request = this.newRequest(method === 'POST', worker.name);
        const fail = (label: string) =>
          end({
            kind: 'no response',
            started: request.firstByteAt !== null,
            failure: { label, message: label },
          });
        const end = (exchange: HttpResult) => {
          if (request.receivedAt !== null) return;
          request.receivedAt = this.clock.now;
          for (const timer of timers) clearTimeout(timer);
          this.reached(`${request.point} received`, worker);
          resolve(exchange);
        };
        // The timers belong to the worker's process, and do not run while the process is frozen.
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

  /** Transmits a request. @returns the response; the label of an error; null if a timeout ends the request */
  private async transmit(
    request: Request,
    body: string,
    worker: SimulatedWorker,
    { beforeFirstByte }: HttpRequestOptions,
  ): Promise<HttpResponse | string | null> {
    const { point } = request;
    // The name of a random sequence must not change, because each seed must play the same world.
    const sequence = point === 'baseline' ? 'look' : point;
    const pause = () => {
      const slowShare = point === 'post' ? STEP_MS.slowShareOfPost : STEP_MS.slowShare;
      return this.clock.sleep(this.random.delayMs(sequence, 'takes', { ...STEP_MS, slowShare }));
    };
    const effect = this.faultEffectFor(point === 'post' ? 'post' : 'get');
    this.reached(`${point} requested`, worker);
    // The kernel of the worker's machine makes the connection, even while the process is frozen.
    await pause();
    await worker.waitUntilAwake();
    if (request.receivedAt !== null) return null;
    if (effect?.kind === 'no connection') return 'ECONNREFUSED';
    if (effect?.kind === 'misconfigured') return 'UND_ERR_INVALID_ARG';
    if (beforeFirstByte?.() !== undefined) return 'held_back';
    request.firstByteAt = this.clock.now;
    this.reached(`${point} started`, worker);
    await pause();
    request.reachedAt = this.clock.now;
    this.reached(`${point} reached`, worker);
    const answer = this.respond(request, body, effect, worker);
    if (answer !== null) request.respondedAt = this.clock.now;
    await pause();
    await worker.waitUntilAwake();
    return answer;
  }

  private newRequest(isPost: boolean, worker: string): Request {
    const { activityType, workflowExecution, base64TaskToken } = Context.current().info;
    const point = isPost ? 'post' : (POINTS[activityType] ?? 'read');
    const origin = [base64TaskToken, worker, workflowExecution?.runId ?? '', this.clock.now] as const;
    const request = new Request(this.requests.length + 1, point, ...origin);
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

  /** @returns the response or the label of an error; null if the agent service does not respond */
  private respond(request: Request, body: string, effect: FaultEffect | undefined, worker: SimulatedWorker) {
    if (request.point === 'post' && effect?.processed !== false) {
      request.processedAt = this.clock.now;
      this.life.receive((JSON.parse(body) as { readonly prompt: string }).prompt);
      this.reached('post processed', worker);
    }
    const { kind = 'job', status = 200, page = false, retryAfter } = effect ?? {};
    const headers = { location: undefined, retryAfter, date: undefined };
    const answer = (value: unknown, isHtml = false): HttpResponse => {
      return { kind: 'response', status, headers, body: { isHtml, value }, failure: null };
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
        const text = this.errorText();
        return page ? answer(text) : answer({ error: text });
      }
      case 'page':
        return answer(undefined, true);
      case 'no job':
        return answer({ ok: true });
      case 'another job':
        return answer({ ...this.life.job(), ...ANOTHER_JOB });
      default: {
        const job = request.point === 'post' ? this.life.job() : this.visibleJob();
        request.shown = kind === 'unknown status' ? { ...job, status: 'expired' } : job;
        request.answer = 'job';
        return answer(request.shown);
      }
    }
  }

  /** Returns the job as one of the replicas shows it. The link appears some time after the turn. */
  private visibleJob(): AgentJob {
    const now = this.life.read();
    const lag = this.random.between('lag', 0, this.job.lagMs);
    const job = lag === 0 ? now : (this.life.jobAt(this.clock.now - lag) ?? now);
    const since = this.life.terminalSince();
    const isLate = since !== null && this.clock.now < since + this.job.linkLateMs;
    return isLate && job.status === 'completed' ? { ...job, prLink: null } : job;
  }
}

const POINTS: Readonly<Record<string, Request['point']>> = { sendMessage: 'baseline', pollJob: 'poll' };

/** The fields of another job. */
const ANOTHER_JOB = { id: 'job-2', status: 'completed', prLink: 'https://code.example/pulls/of-others' };
