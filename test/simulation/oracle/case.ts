import { checkRequest } from '../../../src/core/check-request';
import { type AgentJob, isTerminal } from '../../../src/core/job';
import { MEMO_RECEIPT, UPDATE_EXTEND_DEADLINE, UPDATE_RESOLVE_DELIVERY } from '../../../src/core/names';
import type { FollowUpPlan } from '../../../src/core/request';
import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/core/result';
import { parseDuration } from '../../../src/core/units';
import type { Act } from '../acts';
import type { Request } from '../agent-service';
import type { AskedUpdate } from '../people';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import type { Facts } from '../follow-up-world';

/** What is wrong, in words. */
export type Rule = (found: Case) => Iterable<string>;
export type RuleOfReceipt = (found: Case, receipt: Receipt) => Iterable<string>;

/** Two exchanges, a report, and the queues. */
export const END_MS = 120_000;

/** A read with an answer about the job that somebody has heard. */
export type Shown = Request & { readonly shown: AgentJob; readonly heardAt: number };

/** How the latest run of a follow-up has ended. */
interface End {
  readonly kind: 'result' | 'failure' | 'cancelled' | 'terminated' | 'open';
  /** Of a failure. */
  readonly type: string;
  readonly result: FollowUpResult | undefined;
  readonly receipt: Receipt | undefined;
}

const KINDS: Partial<Record<Run['status'], End['kind']>> = {
  running: 'open',
  WorkflowExecutionCompleted: 'result',
  WorkflowExecutionFailed: 'failure',
  WorkflowExecutionCanceled: 'cancelled',
};

function endOf({ status, end, memo }: Run): End {
  const kind = KINDS[status] ?? 'terminated';
  const result = fromPayload(end.result) as FollowUpResult | undefined;
  const { type, details } = end.failure?.applicationFailureInfo ?? {};
  const failure = fromPayload(details?.payloads?.[0]) as FailureDetails | undefined;
  const cancelled =
    kind === 'cancelled' ? (fromPayload(memo[MEMO_RECEIPT]) as Receipt | undefined) : undefined;
  return { kind, type: type ?? '', result, receipt: result?.followUp ?? failure?.followUp ?? cancelled };
}

const UNDISTURBING: readonly string[] = ['turn of others', 'change job', 'start again'];
const ASKING: readonly string[] = ['poll now', 'extend', 'decide', 'cancel'];

/** Everything that the rules ask about. */
export class Case {
  readonly plan: FollowUpPlan;
  readonly run: Run;
  readonly end: End;
  readonly posts: readonly Request[];
  readonly gets: readonly Request[];
  /** Of these, all but the looks right before a POST. */
  readonly polls: readonly Request[];
  readonly shown: readonly Shown[];
  /** POSTs that have begun and were not answered with 429, which says that nothing was processed. */
  readonly perhapsProcessed: readonly Request[];
  /** Permissions to send that the server has recorded. */
  readonly permissions: Facts['log'];
  readonly isReset: boolean;
  /** Machines and people have left it alone: what it does, it does by its own rules. */
  readonly isUndisturbed: boolean;
  /** Machines have failed, or somebody has changed what Temporal does: it may be late. */
  readonly isHindered: boolean;

  constructor(readonly facts: Facts) {
    const { plan, runs, service, log, done } = facts;
    const checked = checkRequest(plan.request);
    const run = runs.at(-1);
    if (!checked.ok) throw new Error(`not a valid plan: ${JSON.stringify(checked.problems)}`);
    if (run === undefined) throw new Error('nothing was started');
    this.plan = checked.plan;
    this.run = run;
    this.end = endOf(run);
    this.posts = service.requests.filter(({ operation }) => operation === 'post');
    this.gets = service.requests.filter(({ operation }) => operation === 'get');
    this.polls = this.gets.filter(isPoll);
    this.shown = this.gets.filter((get): get is Shown => get.shown !== null && get.heardAt !== null);
    this.perhapsProcessed = this.posts.filter(
      ({ begunAt, answer }) => begunAt !== null && answer !== 'http 429',
    );
    this.permissions = log.filter(({ what }) => what === 'permission recorded');
    this.isReset = done.some(({ kind }) => kind === 'reset');
    this.isUndisturbed = plan.deeds.every(({ act }) => UNDISTURBING.includes(act.kind));
    this.isHindered = plan.deeds.some(({ act }) => ![...UNDISTURBING, ...ASKING].includes(act.kind));
  }

  /** When the latest POST that may have arrived had ended, at the earliest. */
  readonly postEndedAt = (receipt: Receipt): number => {
    const ends = this.perhapsProcessed.map(({ answeredAt, reachedAt, begunAt, heardAt }) =>
      Math.min(answeredAt ?? reachedAt ?? begunAt ?? 0, heardAt ?? Infinity),
    );
    return ends.length > 0 ? Math.max(...ends) : Date.parse(receipt.sentAt ?? '') || 0;
  };

  /** The deadline as it was at the end, at the earliest: extensions only move it. */
  get deadlineAt(): number {
    const first = this.facts.runs[0]?.events.find(({ type }) => type === 'WorkflowTaskStarted');
    return (first?.at ?? 0) + this.plan.deadlineMs;
  }

  /** The deadline as it was at the end, at the latest. */
  get latestDeadlineAt(): number {
    const moved = this.answered(UPDATE_EXTEND_DEADLINE).flatMap(({ args, endedAt }) => {
      const duration = parseDuration(args[0]);
      return 'ms' in duration ? [(endedAt ?? 0) + duration.ms] : [];
    });
    return Math.max(this.deadlineAt, ...moved);
  }

  readonly answered = (name: string): readonly AskedUpdate[] =>
    this.facts.updates.filter((update) => update.name === name && update.end?.kind === 'answered');

  readonly decisions = (decision: string): readonly AskedUpdate[] =>
    this.facts.updates.filter(
      ({ name, args, end }) =>
        name === UPDATE_RESOLVE_DELIVERY && args[0] === decision && end?.kind !== 'refused',
    );

  /** Whether one of these was planned. */
  readonly has = (...kinds: readonly Act['kind'][]): boolean =>
    this.facts.plan.deeds.some(({ act }) => kinds.includes(act.kind));

  /** How many activities were completed by hand. */
  get byHand(): number {
    return this.facts.done.filter(({ kind }) => kind === 'complete by hand').length;
  }

  readonly hasEntered = (phase: string): boolean =>
    this.facts.log.some(({ what }) => what === `phase ${phase}`);

  /** Whether the follow-up was over before this update was answered, or soon after. One that continues as new is not. */
  readonly wasOverAt = ({ askedAt, endedAt }: AskedUpdate): boolean =>
    this.facts.runs.some(
      ({ closedAt, status }) =>
        status !== 'WorkflowExecutionContinuedAsNew' &&
        closedAt >= askedAt &&
        closedAt <= (endedAt ?? Infinity) + 60_000,
    );
}

export function isPoll({ operation, by }: Request): boolean {
  return operation === 'get' && by !== 'sendMessage';
}

export function isAtRest(job: { readonly status: string } | null | undefined): boolean {
  return job !== null && job !== undefined && isTerminal(job.status);
}
