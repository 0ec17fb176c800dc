import { isSendResult } from '../../../src/contract/send-result';
import { checkRequest } from '../../../src/contract/check-request';
import { type AgentJob, isTerminal } from '../../../src/contract/job';
import { MEMO_RECEIPT } from '../../../src/contract/names';
import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/contract/result';
import { parseDuration } from '../../../src/contract/duration';
import type { Operation } from '../operations';
import type { Request } from '../agent-service';
import type { FollowUpWorld } from '../follow-up-world';
import { fromPayload, type HistoryEvent } from '../temporal/history';
import type { Run } from '../temporal/run';

/** A rule for each world. @returns one sentence for each violation */
export type Rule = (found: Case) => Iterable<string>;
/** A rule for each world in which the follow-up has a receipt. */
export type ReceiptRule = (found: Case, receipt: Receipt) => Iterable<string>;

/** The facts of a played world that the rules use. */
export type Case = ReturnType<typeof buildCase>;

/** The time from an event to the end of the run: two HTTP requests, a report, and the waits in task queues. */
export const END_DELAY_MS = 120_000;
/** The maximum age of a send permission when the POST starts. */
export const MAX_PERMISSION_AGE_MS = 10_000;

/** A request whose response with the job was received by a worker. */
type JobRead = Request & { readonly shown: AgentJob; readonly receivedAt: number };

const KINDS = {
  running: 'open',
  WorkflowExecutionCompleted: 'result',
  WorkflowExecutionFailed: 'failure',
  WorkflowExecutionCanceled: 'cancelled',
  WorkflowExecutionTerminated: 'terminated',
  /** The next run has started, so the workflow is open. */
  WorkflowExecutionContinuedAsNew: 'open',
} as const;

const HARMLESS_OPERATIONS: readonly string[] = ['turn by another client', 'change job', 'start again'];
const CALLER_OPERATIONS: readonly string[] = ['poll now', 'extend', 'decide', 'cancel'];

/** Returns how a run ended. `type` is the type of a failure, or an empty text. */
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
  if (!checked.ok) throw new Error(`the plan is not valid: ${JSON.stringify(checked.problems)}`);
  const { plan } = checked;
  const posts = service.requests.filter(({ point }) => point === 'post');
  const gets = service.requests.filter(({ point }) => point !== 'post');
  /** POSTs that were started, and whose response does not show that the message was not processed. */
  const perhapsProcessed = posts.filter((post) => post.firstByteAt !== null && !wasNotProcessed(post));
  /** Whether the plan has only operations of these kinds. */
  const areOnly = (...kinds: readonly string[]) =>
    world.plan.operations.every(({ operation }) => kinds.includes(operation.kind));
  /** The accepted extensions of the deadline. */
  const extensions = world.performedOfKind('extend').filter(({ answer }) => answer?.kind === 'answered');
  /** The deadline without extensions. Extensions only move it to a later time. */
  const deadlineAt = (runs[0]?.startedAt ?? 0) + world.plan.startDelayMs + plan.deadlineMs;
  /** The POSTs that the latest run knows. After a reset to a point between two POSTs, the run does not know the second one. */
  const knownPosts = perhapsProcessed.filter(isKnown(runs));
  const moved = extensions.flatMap(({ operation, endedAt }) => {
    const duration = parseDuration(operation.duration);
    return 'ms' in duration ? [endedAt + duration.ms] : [];
  });
  return {
    ...{ world, plan, posts, gets, perhapsProcessed, deadlineAt },
    run: world.latest,
    end: runOutcome(world.latest),
    /** Reads, without the baseline reads. */
    polls: gets.filter(isPoll),
    shown: gets.filter((get): get is JobRead => get.shown !== null && get.receivedAt !== null),
    /** The send permissions that the Temporal server recorded. */
    permissions: log.filter(({ what }) => what === 'permission recorded'),
    isReset: world.performedOfKind('reset').length > 0,
    /** Whether no operation of the plan affects the follow-up: no machine failed, and no client or operator changed anything. */
    isUndisturbed: areOnly(...HARMLESS_OPERATIONS),
    /** Whether a machine failed, or an operator changed the follow-up's runs or activities: events may then be late. */
    isHindered: !areOnly(...HARMLESS_OPERATIONS, ...CALLER_OPERATIONS),
    /** The number of activities that another client completed. */
    manualCompletions: world.performedOfKind('complete by hand').length,
    /** The latest possible deadline, with all extensions. */
    latestDeadlineAt: Math.max(deadlineAt, ...moved),
    /** The earliest time of a fresh read: `maxStaleness` after the end of the latest known POST that may have been processed. */
    freshFrom: (receipt: Receipt): number => {
      const ends = knownPosts.map(({ respondedAt, reachedAt, firstByteAt, receivedAt }) =>
        Math.min(respondedAt ?? reachedAt ?? firstByteAt ?? 0, receivedAt ?? Infinity),
      );
      const sentAt = Date.parse(receipt.sentAt ?? '') || 0;
      return plan.maxStalenessMs + (ends.length > 0 ? Math.max(...ends) : sentAt);
    },
    decisions: (decision: string) =>
      world
        .performedOfKind('decide')
        .filter(({ operation, answer }) => operation.decision === decision && answer?.kind !== 'rejected'),
    /** Whether the plan has an operation of one of these kinds. */
    has: (...kinds: readonly Operation['kind'][]) =>
      world.plan.operations.some(({ operation }) => kinds.includes(operation.kind)),
    hasEntered: (phase: string) => log.some(({ what }) => what === `phase ${phase}`),
    /** Whether the follow-up ended before the operation had a result, or soon after. Continue-as-new is not an end. */
    wasOverAt: ({ at, endedAt }: FollowUpWorld['performed'][number]) =>
      runs.some(
        ({ closedAt, status }) =>
          status !== 'WorkflowExecutionContinuedAsNew' && closedAt >= at && closedAt <= endedAt + 60_000,
      ),
  };
}

/**
 * Returns whether the latest run knows a POST. A run that a reset made knows only those POSTs of earlier runs that were made
 * before the reset point. If its send had no permit, it assumes that a run before has made a POST: at any time before the send
 * ended, or later with a send permission from before.
 */
function isKnown(runs: readonly Run[]): (post: Request) => boolean {
  const limits = new Map<string, number>();
  let limit = Infinity;
  let assumedUntil = -Infinity;
  for (const { runId, events } of runs.toReversed()) {
    limits.set(runId, limit);
    for (const event of events)
      if (event.at <= limit && sendEndKind(event) === 'reset')
        assumedUntil = Math.max(assumedUntil, event.at + MAX_PERMISSION_AGE_MS);
    const index = events.findLastIndex(
      (event) => event.type === 'WorkflowTaskFailed' && event.cause === 'RESET_WORKFLOW',
    );
    limit = Math.min(limit, events[index - 1]?.at ?? Infinity);
  }
  return ({ requestedAt, runId }) => requestedAt <= Math.max(assumedUntil, limits.get(runId) ?? Infinity);
}

/** Returns how a send ended; undefined for other events, and for a send whose POST was provably not sent. */
export function sendEndKind(event: HistoryEvent): string | undefined {
  if (event.type !== 'ActivityTaskCompleted') return undefined;
  const result = fromPayload(event.resolution.completed?.result);
  if (!isSendResult(result)) return undefined;
  const { outcome } = result;
  return outcome.kind === 'posted' && outcome.outcome.verdict === 'not-sent' ? undefined : outcome.kind;
}

export function isPoll({ point }: Request): boolean {
  return point === 'poll' || point === 'read';
}

/** Whether the response shows that the message was not processed: 429, 401, or 403 with `Retry-After`. */
export function wasNotProcessed({ answer, retryAfter }: Request): boolean {
  return answer === 'http_429' || answer === 'http_401' || (answer === 'http_403' && retryAfter !== null);
}

export function isIdle(job: { readonly status: string } | null | undefined): boolean {
  return job !== null && job !== undefined && isTerminal(job.status);
}

/** Returns the changes that were in effect at some time between `from` and `to`. */
export function changesInEffect<Change extends { readonly at: number }>(
  changes: readonly Change[],
  from: number,
  to: number,
): readonly Change[] {
  const first = changes.findLastIndex(({ at }) => at <= from);
  return changes.slice(Math.max(0, first)).filter(({ at }) => at <= to);
}
