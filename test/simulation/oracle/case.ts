import { checkRequest } from '../../../src/contract/check-request';
import { type AgentJob, isTerminal } from '../../../src/contract/job';
import { MEMO_RECEIPT } from '../../../src/contract/names';
import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/contract/result';
import { parseDuration } from '../../../src/contract/duration';
import type { Operation } from '../operations';
import type { Request } from '../agent-service';
import type { FollowUpWorld } from '../follow-up-world';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';

/** What is wrong, in words. */
export type Rule = (found: Case) => Iterable<string>;
export type ReceiptRule = (found: Case, receipt: Receipt) => Iterable<string>;

/** Everything that the rules ask about. */
export type Case = ReturnType<typeof buildCase>;

/** Two exchanges, a report, and the queues. */
export const END_DELAY_MS = 120_000;

/** A read with an answer about the job that somebody has heard. */
type JobRead = Request & { readonly shown: AgentJob; readonly receivedAt: number };

const KINDS = {
  running: 'open',
  WorkflowExecutionCompleted: 'result',
  WorkflowExecutionFailed: 'failure',
  WorkflowExecutionCanceled: 'cancelled',
  WorkflowExecutionTerminated: 'terminated',
  /** By the server it is followed by another run. */
  WorkflowExecutionContinuedAsNew: 'open',
} as const;

const HARMLESS_OPERATIONS: readonly string[] = ['turn by another client', 'change job', 'start again'];
const CALLER_OPERATIONS: readonly string[] = ['poll now', 'extend', 'decide', 'cancel'];

/** How a run has ended; `type` is that of a failure. */
function runOutcome({ status, end, memo }: Run) {
  const kind = KINDS[status];
  const result = fromPayload(end.result) as FollowUpResult | undefined;
  const { type, details } = end.failure?.applicationFailureInfo ?? {};
  const failure = fromPayload(details?.payloads?.[0]) as FailureDetails | undefined;
  const cancelled = kind === 'cancelled' ? (fromPayload(memo[MEMO_RECEIPT]) as Receipt) : undefined;
  return { kind, type: type ?? '', result, receipt: result?.receipt ?? failure?.receipt ?? cancelled };
}

export function buildCase(world: FollowUpWorld) {
  const { runs, service, log } = world;
  const checked = checkRequest(world.plan.request);
  if (!checked.ok) throw new Error(`not a valid plan: ${JSON.stringify(checked.problems)}`);
  const { plan } = checked;
  const posts = service.requests.filter(({ point }) => point === 'post');
  const gets = service.requests.filter(({ point }) => point !== 'post');
  /** POSTs that have begun, and whose response did not show that nothing was processed. */
  const perhapsProcessed = posts.filter((post) => post.firstByteAt !== null && !wasNotProcessed(post));
  /** People and machines do nothing but this. */
  const areOnly = (...kinds: readonly string[]) =>
    world.plan.operations.every(({ operation }) => kinds.includes(operation.kind));
  /** These have moved the deadline. */
  const extensions = world.performedOfKind('extend').filter(({ answer }) => answer?.kind === 'answered');
  /** The deadline as it was at the end, at the earliest: extensions only move it. */
  const deadlineAt = (runs[0]?.startedAt ?? 0) + world.plan.startDelayMs + plan.deadlineMs;
  const moved = extensions.flatMap(({ operation, endedAt }) => {
    const duration = parseDuration(operation.duration);
    return 'ms' in duration ? [endedAt + duration.ms] : [];
  });
  return {
    ...{ world, plan, posts, gets, perhapsProcessed, deadlineAt },
    run: world.latest,
    end: runOutcome(world.latest),
    /** Reads, but the looks right before a POST. */
    polls: gets.filter(isPoll),
    shown: gets.filter((get): get is JobRead => get.shown !== null && get.receivedAt !== null),
    /** Permissions to send that the server has recorded. */
    permissions: log.filter(({ what }) => what === 'permission recorded'),
    isReset: world.performedOfKind('reset').length > 0,
    /** Machines and people have left it alone: what it does, it does by its own rules. */
    isUndisturbed: areOnly(...HARMLESS_OPERATIONS),
    /** Machines have failed, or somebody has changed what Temporal does: it may be late. */
    isHindered: !areOnly(...HARMLESS_OPERATIONS, ...CALLER_OPERATIONS),
    /** How many activities were completed by hand. */
    manualCompletions: world.performedOfKind('complete by hand').length,
    /** The deadline as it was at the end, at the latest. */
    latestDeadlineAt: Math.max(deadlineAt, ...moved),
    /** When an answer was fresh at the earliest: `maxStaleness` after the end of the latest POST that may have arrived. */
    freshFrom: (receipt: Receipt): number => {
      const ends = perhapsProcessed.map(({ respondedAt, reachedAt, firstByteAt, receivedAt }) =>
        Math.min(respondedAt ?? reachedAt ?? firstByteAt ?? 0, receivedAt ?? Infinity),
      );
      const sentAt = Date.parse(receipt.sentAt ?? '') || 0;
      return plan.maxStalenessMs + (ends.length > 0 ? Math.max(...ends) : sentAt);
    },
    decisions: (decision: string) =>
      world
        .performedOfKind('decide')
        .filter(({ operation, answer }) => operation.decision === decision && answer?.kind !== 'refused'),
    /** Whether one of these was planned. */
    has: (...kinds: readonly Operation['kind'][]) =>
      world.plan.operations.some(({ operation }) => kinds.includes(operation.kind)),
    hasEntered: (phase: string) => log.some(({ what }) => what === `phase ${phase}`),
    /** Whether the follow-up was over before this was answered, or soon after. One that continues as new is not. */
    wasOverAt: ({ at, endedAt }: FollowUpWorld['performed'][number]) =>
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

export function isIdle(job: { readonly status: string } | null | undefined): boolean {
  return job !== null && job !== undefined && isTerminal(job.status);
}

/** What held at some moment of a time, change by change. */
export function changesInEffect<Change extends { readonly at: number }>(
  changes: readonly Change[],
  from: number,
  to: number,
): readonly Change[] {
  const first = changes.findLastIndex(({ at }) => at <= from);
  return changes.slice(Math.max(0, first)).filter(({ at }) => at <= to);
}
