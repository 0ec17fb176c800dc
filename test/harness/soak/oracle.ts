import { CancelledFailure, type Client, WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { MEMO_RECEIPT } from '../../../src/core/names';
import { type AgentJob, isTerminal } from '../../../src/core/job';
import type { FailureDetails, FollowUpResult, Receipt } from '../../../src/core/result';
import type { JobReport, JournalEntry } from '../../../sandbox';
import { throughRestarts } from '../restartable-server';
import type { Part } from './draw-parts';
import type { Diary } from './people';
import { CONFIRM_MS, LAG_MS } from './service';

/** How the latest run of a follow-up ended. */
export type End =
  | { readonly kind: 'result'; readonly result: FollowUpResult; readonly receipt: Receipt }
  | { readonly kind: 'failure'; readonly type: string; readonly receipt: Receipt }
  | { readonly kind: 'cancelled'; readonly receipt: Receipt | null }
  | { readonly kind: 'other'; readonly problem: string };

/** Waits until the latest run of a follow-up has ended, in whatever way. */
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

/** How late the sandbox may notice that an exchange has ended: it shares its process with the soak. */
const NOTICE_MS = 1_000;

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
  found.push(...liesOfProof(facts, end.receipt));
  return found;
}

/** Whether each POST was allowed: by the start, by `resend` in the first run, by a decision for its run. */
function liesOfPosts({ part, firstRunId, posts, report, diary }: Facts): string[] {
  const found: string[] = [];
  const decisions = diary.decisions
    .flat()
    .filter(({ decision, outcome }) => decision === 'not-delivered' && outcome !== 'refused');
  const allowed = 1 + (part.asked.onUnknownDelivery === 'resend' ? 1 : 0) + decisions.length;
  const perhapsProcessed = posts.filter(mayBeProcessed);
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
        startedAt !== null && startedAt < at - slackMs - LAG_MS && (endedAt ?? Infinity) > at + SLACK_MS,
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
    const askedAt = Math.min(...made.map((each) => each.askedAt));
    const answeredAt = Math.max(...made.map((each) => each.answeredAt));
    // Each further POST that they led to asks again.
    const further = posts.map(({ time }) => Date.parse(time)).filter((at) => askedAt < at && at < answeredAt);
    const asked = 1 + further.length;
    if (taken.length > asked)
      found.push(`${taken.map(({ decision }) => decision).join(' and ')} were both taken`);
  }
  return found;
}

/** An update that is answered by nobody for so long hangs, in milliseconds. */
const HANGS_MS = 10_000;

/**
 * Labels of answers that no request need stand behind, or that stand for several labels. A read may go to a pooled connection
 * that the service has just closed for being idle: it then ends as `UND_ERR_SOCKET`, and nobody has read it.
 */
const NOT_ON_THE_WIRE =
  /^(no worker|read failed|connect timeout|cooling down|held back|closed|UND_ERR_SOCKET|E[A-Z].*)$/;

function liesOfReceipt(facts: Facts, receipt: Receipt): string[] {
  const { end, posts, gets, diary } = facts;
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
  const counted = Object.entries(observed);
  const sum = counted.reduce((total, [, count]) => total + count, 0);
  must(sum === polls, `${polls} polls, and ${sum} observed`);
  const onTheWire = counted.filter(([label]) => !NOT_ON_THE_WIRE.test(label));
  const heard = onTheWire.reduce((total, [, count]) => total + count, 0);
  const looks = posts.length > 0 ? 1 : 0;
  must(heard <= gets.length - looks, `${heard} answers to polls, and the service got ${gets.length} reads`);
  if (diary.resets.length > 0) return found;

  must(
    posts.length <= sends || end.kind === 'cancelled',
    `${sends} sends, and the service got ${posts.length} POSTs`,
  );
  if (verdict !== 'not-sent') found.push(...liesOfBaseline(facts, receipt));
  // A POST that was permitted and did not reach the service counts as sent; `sentAt` is then its time.
  if (posts.length > 0 && posts.length === sends && verdict !== 'not-sent') {
    const distances = posts.map(({ time }) => Date.parse(time) - Date.parse(sentAt ?? ''));
    const near = distances.some((ms) => ms > -SLACK_MS && ms < PERMISSION_MS + SLACK_MS);
    must(near, `sentAt is ${String(sentAt)}, and the POST was at ${posts.map(({ time }) => time).join()}`);
  }
  return found;
}

/** Whether the baseline is one that the look right before the POST may have shown. */
function liesOfBaseline(facts: Facts, { baseline, sentAt }: Receipt): string[] {
  const times = facts.posts.filter(mayBeProcessed).map(({ time }) => Date.parse(time));
  const sent = Math.max(Date.parse(sentAt ?? ''), ...times);
  const look = facts.gets.findLast(({ time, status }) => status === 200 && Date.parse(time) <= sent);
  if (baseline === null || look === undefined || isStrange(facts)) return [];
  const [askedAt, answeredAt] = [Date.parse(look.time), Date.parse(look.endedAt ?? look.time)];
  const shown = shownBetween(facts.report, askedAt - LAG_MS, answeredAt);
  return shown.some(({ status }) => status === baseline.status)
    ? []
    : [`the baseline is ${baseline.status}, and the look showed one of ${JSON.stringify(shown)}`];
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

/**
 * Whether a result was told by a fresh answer, and shows the job as it was after the turn of every message. That holds
 * whatever other people did: a turn of theirs that came later is the job's end then, and one that came before is not.
 */
function liesOfResult(facts: Facts, { status, prLink, followUp }: FollowUpResult): string[] {
  const found: string[] = [];
  const must = (truth: boolean, lie: string) => {
    if (!truth) found.push(lie);
  };
  must(followUp.delivery.verdict === 'accepted', `a result with ${followUp.delivery.verdict}`);
  must(followUp.evidence !== null, 'no evidence');
  const { report } = facts;
  const freshAt = postEndedAt(facts, followUp) + CONFIRM_MS - NOTICE_MS;
  const settledAt = Date.parse(followUp.settledAt ?? '');
  must(settledAt >= freshAt, `told ${freshAt - settledAt} ms before an answer could be fresh`);
  must(hasFreshRead(facts, freshAt), 'a result, and no fresh answer');
  const turns = report.turns.filter(({ prompt }) => prompt !== null);
  const turnsEndedAt = Math.max(0, ...turns.map(({ endedAt }) => endedAt ?? Infinity));
  must(turnsEndedAt <= settledAt, 'the turn ended after the follow-up');
  if (isStrange(facts)) return found;
  const shown = shownBetween(report, Math.max(freshAt - LAG_MS, turnsEndedAt), settledAt);
  must(
    shown.some((job) => job.status === status && job.prLink === prLink),
    `the result is ${status} with ${String(prLink)}, and since the turn the job was ${JSON.stringify(shown)}`,
  );
  return found;
}

/**
 * Whether an answer has proved the delivery, where it counts as proved by reading: a fresh one, and if the message never
 * arrived, one that shows what counts as a turn. Then it was somebody else's, which nobody can tell from ours: one that was
 * under way when the answer was fresh, or one that ended in the other one of completed and failed, of which the look showed
 * nothing, because it lagged.
 */
function liesOfProof(facts: Facts, receipt: Receipt): string[] {
  const { delivery, baseline } = receipt;
  if (delivery.confirmedBy !== 'read') return [];
  const freshAt = postEndedAt(facts, receipt) + CONFIRM_MS - NOTICE_MS;
  if (!hasFreshRead(facts, freshAt)) return ['accepted by read, and no fresh answer'];
  if (facts.posts.some(({ processed }) => processed) || isStrange(facts)) return [];
  const shown = shownBetween(facts.report, freshAt - LAG_MS, Date.parse(receipt.settledAt ?? '') || Infinity);
  const proves = ({ status }: AgentJob) =>
    !isTerminal(status) ||
    (baseline?.status === 'completed' && status === 'failed') ||
    (baseline?.status === 'failed' && status === 'completed');
  return baseline !== null && isTerminal(baseline.status) && shown.some(proves)
    ? []
    : [`accepted by read, and never processed: ${String(baseline?.status)}, then ${JSON.stringify(shown)}`];
}

/** When the latest POST that may have arrived had ended, at the earliest. One that never reached the service has `sentAt`. */
function postEndedAt({ posts }: Facts, { sentAt }: Receipt): number {
  return Math.max(
    Date.parse(sentAt ?? '') || 0,
    ...posts.filter(mayBeProcessed).map(({ time, endedAt }) => Date.parse(endedAt ?? time)),
  );
}

/** Only an answered 429 says for certain that the message was not processed, and that it may come again. */
function mayBeProcessed({ status, ending }: JournalEntry): boolean {
  return !(status === 429 && ending === 'answered');
}

function hasFreshRead({ gets }: Facts, freshAt: number): boolean {
  return gets.some(({ time, status }) => status === 200 && Date.parse(time) >= freshAt);
}

function isStrange({ part }: Facts): boolean {
  return part.faults.some(({ name }) => name === 'strange-job');
}

/** Every job that an answer may have shown from one moment to another. */
function shownBetween({ changes }: JobReport, from: number, to: number): AgentJob[] {
  const last = changes.findLastIndex(({ at }) => at <= from);
  return changes.slice(Math.max(0, last)).flatMap(({ at, job }) => (at <= to ? [job] : []));
}
