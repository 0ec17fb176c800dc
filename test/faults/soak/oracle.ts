import { CancelledFailure, type Client, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { MEMO_RECEIPT } from '../../../src/core/names';
import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/core/result';
import type { JobReport, JournalEntry } from '../../../sandbox';
import { throughRestarts } from '../restartable-server';
import type { Part } from './draw-parts';
import type { Diary } from './people';

/** How the latest run of a follow-up ended. */
export type End =
  | { readonly kind: 'result'; readonly result: FollowUpResult; readonly receipt: Receipt }
  | { readonly kind: 'failure'; readonly type: string; readonly receipt: Receipt }
  | { readonly kind: 'cancelled'; readonly receipt: Receipt | null }
  | { readonly kind: 'other'; readonly problem: string };

export async function endOf(client: Client, workflowId: string): Promise<End> {
  const handle = client.workflow.getHandle(workflowId);
  try {
    const result = (await throughRestarts(() => handle.result())) as FollowUpResult;
    return { kind: 'result', result, receipt: result.followUp };
  } catch (error) {
    const cause = error instanceof WorkflowFailedError ? error.cause : undefined;
    if (cause instanceof ApplicationFailure && cause.details?.[0] !== undefined) {
      const { followUp } = cause.details[0] as FailureDetails;
      return { kind: 'failure', type: cause.type ?? '', receipt: followUp };
    }
    if (cause instanceof CancelledFailure) {
      const { memo } = await throughRestarts(() => handle.describe());
      return { kind: 'cancelled', receipt: (memo?.[MEMO_RECEIPT] as Receipt | undefined) ?? null };
    }
    return { kind: 'other', problem: String(cause ?? error) };
  }
}

/** Everything that is known of one follow-up from outside. */
export interface Facts {
  readonly part: Part;
  readonly firstRunId: string;
  readonly end: End;
  readonly posts: readonly JournalEntry[];
  readonly gets: readonly JournalEntry[];
  readonly report: JobReport;
  readonly diary: Diary;
}

/** From the POST to the journal, on a busy machine. */
const SLACK_MS = 3_000;

/** For so long the server's permission to send is good: a worker may make its POST so much later than its look. */
const PERMISSION_MS = 10_000;

/** What is wrong with the end of a follow-up, by everything that is known of it; empty when all is true. */
export function lies(facts: Facts): string[] {
  const { end } = facts;
  const found = [...liesOfPosts(facts), ...liesOfPeople(facts)];
  if (end.kind === 'other') return [...found, `it ended by ${end.problem}`];
  if (end.receipt === null) return [...found, 'it was cancelled, and left no receipt'];
  found.push(...liesOfReceipt(facts, end.receipt));
  if (end.kind === 'failure') found.push(...liesOfFailure(end.type, end.receipt));
  if (end.kind === 'result') found.push(...liesOfResult(facts, end.result));
  return found;
}

/** Whether each POST was allowed: by the start, by `resend` in the first run, by a decision for its run. */
function liesOfPosts({ part, firstRunId, posts, report, diary }: Facts): string[] {
  const found: string[] = [];
  const decisions = diary.decisions
    .flat()
    .filter(({ decision, outcome }) => decision === 'not-delivered' && outcome !== 'refused');
  const allowed = 1 + (part.asked.onUnknownDelivery === 'resend' ? 1 : 0) + decisions.length;
  const perhapsProcessed = posts.filter(({ status, ending }) => !(status === 429 && ending === 'answered'));
  if (perhapsProcessed.length > allowed) {
    found.push(`${perhapsProcessed.length} POSTs may have been processed, and ${allowed} were allowed`);
  }
  for (const [index, post] of perhapsProcessed.entries()) {
    const at = Date.parse(post.time);
    const slackMs = SLACK_MS + PERMISSION_MS;
    const reset = diary.resets.findLast((each) => each.at < at - slackMs);
    const named = decisions.some(
      ({ runId, askedAt }) => (runId ?? firstRunId) === reset?.runId && askedAt < at,
    );
    if (reset !== undefined && !named)
      found.push(`POST ${post.number} of a reset run, for which nobody has decided`);
    if (index > 0 || part.asked.whenActive === 'send') continue;
    const active = report.turns.some(
      ({ startedAt, endedAt }) =>
        startedAt !== null && startedAt < at - slackMs && (endedAt ?? Infinity) > at + SLACK_MS,
    );
    if (active)
      found.push(`POST ${post.number} to an active job, and whenActive is ${part.asked.whenActive}`);
  }
  return found;
}

/** Whether whoever asked was answered, and only one of those who decided at once was followed. */
function liesOfPeople({ diary, posts }: Facts): string[] {
  const found = diary.updates
    // The server itself may refuse one at once, while it resets the run; to hang is what no update may.
    .filter(({ outcome, tookMs }) => outcome === 'none' && tookMs > HANGS_MS)
    .map(
      ({ name, tookMs, error }) => `the update ${name} was not answered in ${tookMs} ms: ${String(error)}`,
    );
  for (const made of diary.decisions) {
    const taken = made.filter(({ outcome }) => outcome === 'answered');
    const [askedAt, answeredAt] = [
      Math.min(...made.map((each) => each.askedAt)),
      Math.max(...made.map((each) => each.answeredAt)),
    ];
    // Each further POST that they led to asks again.
    const asked =
      1 + posts.filter(({ time }) => askedAt < Date.parse(time) && Date.parse(time) < answeredAt).length;
    if (taken.length > asked)
      found.push(`${taken.map(({ decision }) => decision).join(' and ')} were both taken`);
  }
  return found;
}

/** An update that is answered by nobody for so long hangs, in milliseconds. */
const HANGS_MS = 10_000;

/** Labels of answers that no request stands behind, or that stand for several labels. */
const NOT_ON_THE_WIRE = ['no worker', 'read failed', 'connect timeout', 'held back', 'closed'];

function liesOfReceipt({ part, end, posts, gets, report, diary }: Facts, receipt: Receipt): string[] {
  const found: string[] = [];
  const must = (truth: boolean, lie: string) => {
    if (!truth) found.push(lie);
  };
  const { delivery, polls, observed, sentAt } = receipt;
  const { verdict, confirmedBy, sends } = delivery;
  const processed = posts.filter((post) => post.processed).length;
  must((verdict === 'accepted') === (confirmedBy !== null), `${verdict} by ${String(confirmedBy)}`);
  if (verdict === 'not-sent' || verdict === 'rejected') must(processed === 0, `${verdict}, and processed`);
  if (confirmedBy === 'response') must(processed > 0, 'accepted by response, and never processed');
  if (confirmedBy === 'read' && !part.faults.some(({ name }) => name === 'strange-job')) {
    must(processed > 0 || othersMoved(report, posts, sentAt), 'accepted by read, and never processed');
  }
  const counted = Object.entries(observed);
  const sum = counted.reduce((total, [, count]) => total + count, 0);
  must(sum === polls, `${polls} polls, and ${sum} observed`);
  const onTheWire = counted.filter(([label]) => !NOT_ON_THE_WIRE.includes(label) && !/^E[A-Z]/.test(label));
  const heard = onTheWire.reduce((total, [, count]) => total + count, 0);
  const looks = posts.length > 0 ? 1 : 0;
  must(heard <= gets.length - looks, `${heard} answers to polls, and the service got ${gets.length} reads`);
  if (diary.resets.length > 0) return found;

  must(
    posts.length <= sends || end.kind === 'cancelled',
    `${sends} sends, and the service got ${posts.length} POSTs`,
  );
  // A POST that was permitted and did not reach the service counts as sent; `sentAt` is then its time.
  if (posts.length > 0 && posts.length === sends && verdict !== 'not-sent') {
    const distances = posts.map(({ time }) => Date.parse(time) - Date.parse(sentAt ?? ''));
    const near = distances.some((ms) => ms > -SLACK_MS && ms < PERMISSION_MS + SLACK_MS);
    must(near, `sentAt is ${String(sentAt)}, and the POST was at ${posts.map(({ time }) => time).join()}`);
  }
  return found;
}

function liesOfFailure(type: string, { delivery }: Receipt): string[] {
  const verdicts: Readonly<Record<string, readonly string[]>> = {
    FollowUpRejected: ['not-sent', 'rejected'],
    DeliveryUnknown: ['unknown'],
    JobNotFound: ['not-sent', 'accepted', 'unknown'],
    DeadlineExceeded: ['not-sent', 'accepted', 'unknown'],
  };
  return verdicts[type]?.includes(delivery.verdict) === true ? [] : [`${type} with ${delivery.verdict}`];
}

function liesOfResult(
  { part, posts, report }: Facts,
  { status, prLink, followUp }: FollowUpResult,
): string[] {
  const found: string[] = [];
  const must = (truth: boolean, lie: string) => {
    if (!truth) found.push(lie);
  };
  const { confirmedBy, verdict } = followUp.delivery;
  must(verdict === 'accepted', `a result with ${verdict}`);
  must(followUp.evidence !== null, 'no evidence');
  // An assumed message may be processed later than anybody looked; and turns of others look like ours.
  const strange = part.faults.some(({ name }) => name === 'strange-job');
  if (
    confirmedBy === 'assumed' ||
    confirmedBy === 'operator' ||
    strange ||
    othersMoved(report, posts, followUp.sentAt)
  )
    return found;
  must(status === report.job.status, `the result is ${status}, the job ${report.job.status}`);
  must(
    prLink === report.job.prLink,
    `the result links ${String(prLink)}, the job ${String(report.job.prLink)}`,
  );
  const ended = report.turns
    .filter(({ prompt }) => prompt !== null)
    .map(({ endedAt }) => endedAt ?? Infinity);
  must(Math.max(...ended) <= Date.parse(followUp.settledAt ?? ''), 'the turn ended after the follow-up');
  return found;
}

/**
 * Whether somebody else's turn was under way after the look at the job before the first POST. A worker that was killed
 * between its permission and the POST has sent none: then the time is the permission's.
 */
function othersMoved(report: JobReport, posts: readonly JournalEntry[], sentAt: string | null): boolean {
  const lookedAt = Date.parse(posts[0]?.time ?? sentAt ?? '') - SLACK_MS;
  const others = report.turns.filter(({ prompt, startedAt }) => prompt === null && startedAt !== null);
  return others.some(({ startedAt, endedAt, state }) => {
    // The turn that a message interrupts was over with the message.
    const overWithPost = state === 'interrupted' && (endedAt ?? Infinity) <= lookedAt + 2 * SLACK_MS;
    return (startedAt ?? 0) > lookedAt || ((endedAt ?? Infinity) > lookedAt && !overWithPost);
  });
}
