import { Context } from '@temporalio/activity';
import type { Answer, Exchange, exchange as realExchange } from '../../src/agent-api/exchange';
import { type AgentJob } from '../../src/core/job';
import { JobLife } from '../../sandbox/job-life';
import type { VirtualClock } from './clock';
import type { Luck } from './luck';
import type { Plan, Trouble } from './plan';
import type { SimulatedWorker } from './worker/worker';

/** One request as the service and its client knew it. Times in milliseconds since the epoch; null for what never came. */
export interface Request {
  readonly number: number;
  readonly operation: 'get' | 'post';
  /** The activity that has asked, and the run that it belongs to. */
  readonly by: string;
  readonly runId: string;
  readonly askedAt: number;
  /** When its first byte left. */
  begunAt: number | null;
  reachedAt: number | null;
  /** When its message was processed. */
  processedAt: number | null;
  /** A status, or what else came back. */
  answer: string | null;
  retryAfter: string | null;
  answeredAt: number | null;
  /** When the client had its end; a worker that has died has none. */
  heardAt: number | null;
  /** The job that a read has shown. */
  shown: AgentJob | null;
}

export const PROJECT = 'project-1';
export const JOB = 'job-1';
export const PROMPT = 'Fix the broken links.';

/** One way, mostly; and how much longer a slow one takes. */
const WAY_MS = { usual: 120, slow: 6_000, slowShare: 0.06 };

/** The agent service with its one job, at the border of HTTP: what undici would have told. */
export class AgentService {
  readonly requests: Request[] = [];
  readonly life: JobLife;
  private readonly counts = { get: 0, post: 0 };
  private links = 0;

  constructor(
    private readonly clock: VirtualClock,
    private readonly luck: Luck,
    private readonly plan: Plan,
    private readonly reached: (point: string, worker?: SimulatedWorker) => void,
  ) {
    const { status, hasLink, turns, whileActive } = plan.job;
    const start = {
      ...{ id: JOB, status, source: { repository: 'example/handbook', ref: null }, model: 'writer-1' },
      ...{
        prLink: hasLink ? 'https://code.example/pulls/0' : null,
        createdAt: new Date(clock.now).toISOString(),
      },
      archivedAt: status === 'archived' ? new Date(clock.now).toISOString() : null,
    };
    const openPullRequest = () => `https://code.example/pulls/${(this.links += 1)}`;
    const random = () => this.luck.next('turn');
    this.life = new JobLife(start, {
      ...{ now: () => clock.now, random, turnMs: 60_000, whileActive, queueGapMs: 0, openPullRequest },
      // The turn of a job that is active before is not one of ours.
      plans: status === 'active' ? [{}, ...turns] : turns,
    });
  }

  /** As `exchange` of the agent API, for one worker. */
  exchangeFor(worker: SimulatedWorker): typeof realExchange {
    return (_dispatcher, { method, body }, limits) =>
      new Promise<Exchange>((resolve) => {
        const operation = method === 'POST' ? 'post' : 'get';
        const { activityType, workflowExecution } = Context.current().info;
        const runId = workflowExecution?.runId ?? '';
        const asked = { operation, by: activityType, runId, askedAt: this.clock.now, begunAt: null } as const;
        const request: Request = {
          ...{ ...asked, number: this.requests.length + 1, reachedAt: null, processedAt: null },
          ...{ answer: null, retryAfter: null, answeredAt: null, heardAt: null, shown: null },
        };
        this.requests.push(request);
        const point =
          operation === 'post'
            ? 'post'
            : activityType === 'sendMessage'
              ? 'look'
              : activityType === 'pollJob'
                ? 'poll'
                : 'read';
        const nth = this.counts[operation];
        this.counts[operation] += 1;
        const trouble = this.plan.spells.find(
          (spell) =>
            spell.operation === operation &&
            nth >= spell.after &&
            nth < spell.after + spell.count &&
            (!spell.stutters || (nth - spell.after) % 2 === 0),
        )?.trouble;
        let begun = false;
        let over = false;
        const end = (exchange: Exchange) => {
          if (over) return;
          over = true;
          request.heardAt = this.clock.now;
          for (const timer of timers) clearTimeout(timer);
          this.reached(`${point} heard`, worker);
          resolve(exchange);
        };
        const fail = (label: string) => {
          end({ kind: 'no answer', started: begun, brokenBy: [{ label, text: label }] });
        };
        const timers = [
          setTimeout(() => {
            fail('timeout');
          }, limits.timeoutMs),
          setTimeout(() => {
            if (!begun) fail('connect timeout');
          }, limits.connectTimeoutMs),
        ];
        this.reached(`${point} asked`, worker);
        // The connection is made by the worker's kernel, also while the process stands still.
        this.clock.after(this.way(point), () => {
          worker.whenAwake(() => {
            if (over) return;
            if (trouble?.kind === 'refused') return fail('ECONNREFUSED');
            if (trouble?.kind === 'misconfigured') return fail('UND_ERR_INVALID_ARG');
            const why = limits.beforeFirstByte?.();
            if (why !== undefined) return fail('held back');
            begun = true;
            request.begunAt = this.clock.now;
            this.reached(`${point} begun`, worker);
            this.clock.after(this.way(point), () => {
              const answer = this.serve(request, point, String(body), trouble, worker);
              if (answer === null) return;
              request.answeredAt = this.clock.now;
              this.clock.after(this.way(point), () => {
                worker.whenAwake(() => {
                  if (answer === 'reset') fail('UND_ERR_SOCKET');
                  else end(answer);
                });
              });
            });
          });
        });
      });
  }

  /** @returns null for silence */
  private serve(
    request: Request,
    point: string,
    body: string,
    trouble: Trouble | undefined,
    worker: SimulatedWorker,
  ): Answer | 'reset' | null {
    request.reachedAt = this.clock.now;
    this.reached(`${point} reached`, worker);
    const isProcessed =
      trouble === undefined ||
      ('processed' in trouble && trouble.processed) ||
      trouble.kind === 'unknown word';
    if (request.operation === 'post' && isProcessed) {
      request.processedAt = this.clock.now;
      this.life.receive((JSON.parse(body) as { readonly prompt: string }).prompt);
      this.reached('post processed', worker);
    }
    const say = (answer: string) => {
      request.answer = answer;
    };
    switch (trouble?.kind) {
      case 'timeout':
        say('silence');
        return null;
      case 'reset':
        say('reset');
        return 'reset';
      case 'status': {
        say(`http ${trouble.status}`);
        request.retryAfter = trouble.retryAfter ?? null;
        const error = trouble.words ?? `answered with ${trouble.status}`;
        return answerOf(trouble.status, { kind: 'json', value: { error } }, trouble.retryAfter);
      }
      case 'page':
        say('page');
        return answerOf(200, { kind: 'html' });
      case 'no job':
        say('no job');
        return answerOf(200, { kind: 'json', value: { ok: true } });
      case 'another job':
        say('another job');
        return answerOf(200, { kind: 'json', value: { ...this.life.job(), ...ANOTHER } });
    }
    const job = request.operation === 'get' ? this.shown() : this.life.job();
    const told = trouble?.kind === 'unknown word' ? { ...job, status: 'expired' } : job;
    say('job');
    request.shown = told;
    return answerOf(200, { kind: 'json', value: told });
  }

  /** The job as one of the replicas has it. */
  private shown(): AgentJob {
    const now = this.life.read();
    const lag = this.luck.between('lag', 0, this.plan.job.lagMs);
    const before = lag === 0 ? undefined : this.life.jobAt(this.clock.now - lag);
    return this.withLateLink(before ?? now);
  }

  /** The link comes some time after the turn. */
  private withLateLink(job: AgentJob): AgentJob {
    const since = this.life.settledSince();
    const isLate = since !== null && this.clock.now < since + this.plan.job.linkLateMs;
    return isLate && job.status === 'completed' ? { ...job, prLink: null } : job;
  }

  private way(point: string): number {
    const isSlow = this.luck.chance(`${point} is slow`, WAY_MS.slowShare);
    return this.luck.between(`${point} takes`, 1, isSlow ? WAY_MS.slow : WAY_MS.usual);
  }
}

/** The job of somebody else. */
const ANOTHER = { id: 'job-2', status: 'completed', prLink: 'https://code.example/pulls/of-others' };

function answerOf(status: number, body: Answer['body'], retryAfter?: string): Answer {
  return { kind: 'answer', status, headers: { location: undefined, retryAfter }, body, brokenBy: [] };
}
