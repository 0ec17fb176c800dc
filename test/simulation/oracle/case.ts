import { checkRequest } from '../../../src/contract/check-request';
import { type AgentJob, isTerminal } from '../../../src/contract/job';
import { MEMO_RECEIPT } from '../../../src/contract/names';
import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/contract/result';
import { parseDuration } from '../../../src/contract/duration';
import type { Act } from '../acts';
import type { Request } from '../agent-service';
import type { FollowUpWorld } from '../follow-up-world';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';

/** What is wrong, in words. */
export type Rule = (found: Case) => Iterable<string>;
export type RuleOfReceipt = (found: Case, receipt: Receipt) => Iterable<string>;

/** Everything that the rules ask about. */
export type Case = ReturnType<typeof caseOf>;

/** Two exchanges, a report, and the queues. */
export const END_MS = 120_000;

/** A read with an answer about the job that somebody has heard. */
type Shown = Request & { readonly shown: AgentJob; readonly heardAt: number };

const KINDS = {
  running: 'open',
  WorkflowExecutionCompleted: 'result',
  WorkflowExecutionFailed: 'failure',
  WorkflowExecutionCanceled: 'cancelled',
  WorkflowExecutionTerminated: 'terminated',
  /** By the server it is followed by another run. */
  WorkflowExecutionContinuedAsNew: 'open',
} as const;

const UNDISTURBING: readonly string[] = ['turn of others', 'change job', 'start again'];
const ASKING: readonly string[] = ['poll now', 'extend', 'decide', 'cancel'];

/** How a run has ended; `type` is that of a failure. */
function endOf({ status, end, memo }: Run) {
  const kind = KINDS[status];
  const result = fromPayload(end.result) as FollowUpResult | undefined;
  const { type, details } = end.failure?.applicationFailureInfo ?? {};
  const failure = fromPayload(details?.payloads?.[0]) as FailureDetails | undefined;
  const cancelled = kind === 'cancelled' ? (fromPayload(memo[MEMO_RECEIPT]) as Receipt) : undefined;
  return { kind, type: type ?? '', result, receipt: result?.receipt ?? failure?.receipt ?? cancelled };
}

export function caseOf(world: FollowUpWorld) {
  const { runs, service, log } = world;
  const checked = checkRequest(world.plan.request);
  if (!checked.ok) throw new Error(`not a valid plan: ${JSON.stringify(checked.problems)}`);
  const { plan } = checked;
  const posts = service.requests.filter(({ point }) => point === 'post');
  const gets = service.requests.filter(({ point }) => point !== 'post');
  /** POSTs that have begun, and whose response did not show that nothing was processed. */
  const perhapsProcessed = posts.filter((post) => post.begunAt !== null && !wasNotProcessed(post));
  /** People and machines do nothing but this. */
  const areOnly = (...kinds: readonly string[]) =>
    world.plan.deeds.every(({ act }) => kinds.includes(act.kind));
  /** These have moved the deadline. */
  const extensions = world.doneBy('extend').filter(({ answer }) => answer?.kind === 'answered');
  /** The deadline as it was at the end, at the earliest: extensions only move it. */
  const deadlineAt = (runs[0]?.startedAt ?? 0) + world.plan.startDelayMs + plan.deadlineMs;
  const moved = extensions.flatMap(({ act, endedAt }) => {
    const duration = parseDuration(act.duration);
    return 'ms' in duration ? [endedAt + duration.ms] : [];
  });
  return {
    ...{ world, plan, posts, gets, perhapsProcessed, deadlineAt },
    run: world.latest,
    end: endOf(world.latest),
    /** Reads, but the looks right before a POST. */
    polls: gets.filter(isPoll),
    shown: gets.filter((get): get is Shown => get.shown !== null && get.heardAt !== null),
    /** Permissions to send that the server has recorded. */
    permissions: log.filter(({ what }) => what === 'permission recorded'),
    isReset: world.doneBy('reset').length > 0,
    /** Machines and people have left it alone: what it does, it does by its own rules. */
    isUndisturbed: areOnly(...UNDISTURBING),
    /** Machines have failed, or somebody has changed what Temporal does: it may be late. */
    isHindered: !areOnly(...UNDISTURBING, ...ASKING),
    /** How many activities were completed by hand. */
    byHand: world.doneBy('complete by hand').length,
    /** The deadline as it was at the end, at the latest. */
    latestDeadlineAt: Math.max(deadlineAt, ...moved),
    /** When an answer was fresh at the earliest: `maxStaleness` after the end of the latest POST that may have arrived. */
    freshFrom: (receipt: Receipt): number => {
      const ends = perhapsProcessed.map(({ answeredAt, reachedAt, begunAt, heardAt }) =>
        Math.min(answeredAt ?? reachedAt ?? begunAt ?? 0, heardAt ?? Infinity),
      );
      const sentAt = Date.parse(receipt.sentAt ?? '') || 0;
      return plan.maxStalenessMs + (ends.length > 0 ? Math.max(...ends) : sentAt);
    },
    decisions: (decision: string) =>
      world
        .doneBy('decide')
        .filter(({ act, answer }) => act.decision === decision && answer?.kind !== 'refused'),
    /** Whether one of these was planned. */
    has: (...kinds: readonly Act['kind'][]) => world.plan.deeds.some(({ act }) => kinds.includes(act.kind)),
    hasEntered: (phase: string) => log.some(({ what }) => what === `phase ${phase}`),
    /** Whether the follow-up was over before this was answered, or soon after. One that continues as new is not. */
    wasOverAt: ({ at, endedAt }: FollowUpWorld['done'][number]) =>
      runs.some(
        ({ closedAt, status }) =>
          status !== 'WorkflowExecutionContinuedAsNew' && closedAt >= at && closedAt <= endedAt + 60_000,
      ),
  };
}

export function isPoll({ point }: Request): boolean {
  return point === 'poll' || point === 'read';
}

/** A POST that received 429, 401, or 403 with `Retry-After` is sent again. */
export function wasNotProcessed({ answer, retryAfter }: Request): boolean {
  return answer === 'http_429' || answer === 'http_401' || (answer === 'http_403' && retryAfter !== null);
}

export function isAtRest(job: { readonly status: string } | null | undefined): boolean {
  return job !== null && job !== undefined && isTerminal(job.status);
}

/** What held at some moment of a time, change by change. */
export function heldBetween<Change extends { readonly at: number }>(
  changes: readonly Change[],
  from: number,
  to: number,
): readonly Change[] {
  const first = changes.findLastIndex(({ at }) => at <= from);
  return changes.slice(Math.max(0, first)).filter(({ at }) => at <= to);
}
