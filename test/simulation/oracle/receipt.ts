import type { FollowUpProgress, Receipt } from '../../../src/contract/result';
import { isMachineOperation } from '../operations';
import { START_MS } from '../clock';
import { fromPayload, type HistoryEvent, isActivityEnd } from '../temporal/history';
import { type Case, END_DELAY_MS, changesInEffect, isIdle, isPoll, type ReceiptRule } from './case';

/** A read whose heartbeat is late is made by a second attempt, too. */
const ATTEMPTS = 2;
const HEARTBEAT_MS = 10_000;
/** From the response to a read to the Temporal server that has its report, with slow calls. */
const REPORT_MS = 10_000;
/** Answers for which no request was made. */
const LABELS_WITHOUT_REQUEST = new Set(['cooling_down', 'closed', 'no_worker', 'read_failed']);
const IS_ANSWER = /^(http_|active$|completed$|archived$|failed$)/;

/** What is known of the message, by how it ends: the type of a failure, or else its kind. */
const VERDICTS_BY_OUTCOME: Readonly<Record<string, readonly string[]>> = {
  result: ['accepted'],
  FollowUpRejected: ['not-sent', 'rejected'],
  DeliveryUnknown: ['unknown'],
  JobNotFound: ['not-sent', 'accepted', 'unknown'],
  DeadlineExceeded: ['not-sent', 'accepted', 'unknown'],
};

/** Without which a delivery is confirmed by nobody but the service. */
const CHOICES: Readonly<Record<string, string>> = { operator: 'ask', assumed: 'assume-delivered' };

/** What a receipt says, against all that is known. */
export const RECEIPT_RULES: readonly ReceiptRule[] = [
  function* verdictIsTrue({ end, plan, posts, decisions }, { delivery: { verdict, confirmedBy } }) {
    const verdicts = VERDICTS_BY_OUTCOME[end.type || end.kind];
    if (end.kind === 'failure' && verdicts === undefined) yield `it failed by ${end.type}`;
    else if (verdicts?.includes(verdict) === false) yield `${end.type || end.kind} with ${verdict}`;
    const isProcessed = posts.some(({ processedAt }) => processedAt !== null);
    if ((verdict === 'accepted') !== (confirmedBy !== null)) yield `${verdict} by ${String(confirmedBy)}`;
    if ((verdict === 'not-sent' || verdict === 'rejected') && isProcessed) yield `${verdict}, and processed`;
    if (confirmedBy === 'response' && !isProcessed) yield 'accepted by response, and never processed';
    if (confirmedBy === 'operator' && decisions('delivered').length === 0)
      yield 'accepted by operator, and nobody decided';
    const choice = CHOICES[confirmedBy ?? ''] ?? plan.onUnknownDelivery;
    if (choice !== plan.onUnknownDelivery)
      yield `accepted by ${String(confirmedBy)}, with ${plan.onUnknownDelivery}`;
  },
  /** Between the POSTs that have begun and the permissions that were given, with one that a reset run presumes. */
  function* countsItsSends(
    { world, isReset, posts, permissions, manualCompletions, run, end },
    { delivery },
  ) {
    const { sends, verdict } = delivery;
    const begun = posts.filter(({ firstByteAt }) => firstByteAt !== null);
    // A run made by the only reset counts what its history has, and one that the run before may have made.
    const whole = world.runs.filter(({ start }) => start.continuedFromRunId === undefined);
    const isOneReset = world.performedOfKind('reset').length === 1 && whole.length === 2;
    const hasOneEach = world.runs.every(
      ({ runId }) => begun.filter((post) => post.runId === runId).length <= 1,
    );
    if ((!isReset || (isOneReset && hasOneEach)) && begun.length > sends)
      yield `${sends} sends, and ${begun.length} POSTs (${end.kind})`;
    // Until its history has a POST, or for good once it was refused to make one.
    const ends = run.events.map(sendEndKind);
    if (!isReset && ends.includes('reset')) yield 'a send had no permit, and nothing was reset';
    const presumes = isReset && (ends.includes('reset') || !ends.includes('posted'));
    // A cancelled send does not report what it has recorded, and the response to the question may have been lost or too late.
    const isCancelled = run.events.some(({ type }) => type === 'ActivityTaskCanceled');
    const isUnanswered = run.events.some(
      (event) => event.type === 'MarkerRecorded' && Boolean(event.resolution.failed),
    );
    // The worker of a paused send has died: its cancellation is never confirmed.
    const isPending = run.events.some(
      (event) =>
        event.type === 'ActivityTaskCancelRequested' &&
        !run.events.some((other) => isActivityEnd(other) && other.seq === event.seq),
    );
    const isUntold = (isCancelled && isUnanswered) || isPending;
    if (sends > permissions.length + manualCompletions + (presumes || isUntold ? 1 : 0))
      yield `${sends} sends, and ${permissions.length} permissions (${end.kind})`;
    if (sends === 0 && verdict !== 'not-sent') yield `${verdict}, and nothing was sent (${end.kind})`;
  },
  /** Without a POST, only a machine that fails, or people, make it unknown. */
  function* countsNoSendWithoutPost({ world, posts, isReset, manualCompletions }, { delivery }) {
    if (posts.length > 0 || isReset || manualCompletions > 0) return;
    const isWhole = !world.plan.operations.some(({ operation }) => isMachineOperation(operation));
    if (isWhole && delivery.sends > 0) yield `${delivery.sends} sends, and no POST was asked for`;
  },
  /** What becomes of an unknown delivery is what the caller has chosen. */
  function* unknownDeliveryFollowsOption({ plan, posts, perhapsProcessed, end, isUndisturbed }) {
    const { onUnknownDelivery: choice, whenActive } = plan;
    if (!isUndisturbed || end.type !== 'DeliveryUnknown') return;
    const isSecondRefused = posts.length > 1 && posts.at(-1)?.firstByteAt === null;
    if (choice === 'ask' || choice === 'assume-delivered') yield `DeliveryUnknown, with ${choice}`;
    if (choice === 'resend' && perhapsProcessed.length < 2 && whenActive !== 'reject' && !isSecondRefused)
      yield `DeliveryUnknown after ${perhapsProcessed.length} POSTs, with resend`;
  },
  /** Unless machines hinder it, it counts each read since its POST. */
  function* countsEveryRead(
    { polls, perhapsProcessed, isHindered, world, end },
    { responseCounts, delivery },
  ) {
    const [post, ...more] = perhapsProcessed;
    const isOne = post !== undefined && more.length === 0 && world.runs.length === 1 && delivery.sends <= 1;
    // A read that came too late for the deadline was made, and told to nobody.
    if (isHindered || !isOne || responseCounts.no_worker !== undefined || end.kind === 'failure') return;
    const since = post.receivedAt ?? Infinity;
    const reads = polls.filter(
      ({ requestedAt, receivedAt }) => requestedAt >= since && receivedAt !== null,
    ).length;
    const counted = Object.entries(responseCounts).map(([label, count]) =>
      LABELS_WITHOUT_REQUEST.has(label) ? 0 : count,
    );
    // An update or a cancellation interrupts the read that is in progress.
    const interruptions = world.log.filter(({ what }) => what === 'countPollReads started');
    const interrupted = polls.filter(({ point, requestedAt, receivedAt }) =>
      interruptions.some(
        ({ at }) =>
          point === 'poll' &&
          requestedAt <= at + START_MS + REPORT_MS &&
          (receivedAt ?? Infinity) >= at + START_MS - REPORT_MS,
      ),
    ).length;
    const isSlow = polls.some(
      ({ requestedAt, receivedAt }) => (receivedAt ?? Infinity) - requestedAt > HEARTBEAT_MS,
    );
    // A cancellation also interrupts a single read.
    const lost = interrupted + (isSlow ? ATTEMPTS : 0) + (end.kind === 'cancelled' ? 1 : 0);
    if (sum(counted) > reads || sum(counted) < reads - lost)
      yield `${sum(counted)} reads were counted, and ${reads} were made since the POST`;
  },
  /** Each counted answer was heard. */
  function* countedResponsesWereReceived({ polls: made, world, isHindered }, { polls, responseCounts }) {
    // An attempt of `pollJob` whose worker is lost, or whose result can't be encoded, counts as a read of the known job.
    const attempts = world.log.filter(({ what }) => what === 'pollJob started').length;
    const heardPolls = made.filter(({ point, receivedAt }) => point === 'poll' && receivedAt !== null).length;
    const broken = world.plan.operations.filter(({ operation }) => operation.kind === 'break').length;
    const lost = (isHindered ? Math.max(0, attempts - heardPolls) : 0) + broken;
    if (!isHindered && responseCounts.no_worker !== undefined)
      yield 'a read had no worker, and nothing hindered it';
    if (sum(Object.values(responseCounts)) !== polls)
      yield `${polls} polls, and ${sum(Object.values(responseCounts))} responses were counted`;
    for (const [label, count] of Object.entries(responseCounts)) {
      const heard = made.filter(
        ({ receivedAt, answer, shown }) => receivedAt !== null && [answer, shown?.status].includes(label),
      );
      if (IS_ANSWER.test(label) && heard.length + lost < count)
        yield `${label} was counted ${count} times, and heard ${heard.length} times`;
    }
  },
  /** A query tells of an ended run what its receipt says. */
  function* progressMatchesReceipt({ world, run, end }, { delivery, evidence, polls }) {
    const progress = world.progress.get(run) as FollowUpProgress | undefined;
    const reported = JSON.stringify([progress?.delivery, progress?.evidence, progress?.polls]);
    if (progress !== undefined && reported !== JSON.stringify([delivery, evidence, polls]))
      yield `progress says ${reported} (${end.kind})`;
  },
  /** The baseline is what a look right before a POST has shown. */
  function* baselineMatchesBaselineRead(
    { manualCompletions, posts, shown, isUndisturbed },
    { baseline, delivery },
  ) {
    if (baseline === null && isUndisturbed && posts.length > 0)
      yield 'the look before the POST is no baseline';
    if (baseline === null || manualCompletions > 0) return;
    const baselineReads = shown.filter((get) => !isPoll(get));
    const before = posts.map((post) =>
      baselineReads.findLast(
        ({ receivedAt, runId }) => runId === post.runId && receivedAt <= post.requestedAt,
      ),
    );
    // A worker that dies after its permission leaves a baseline without a POST.
    const possible =
      isUndisturbed && posts.length > 0 && delivery.verdict !== 'not-sent' ? before : baselineReads;
    const said = formatJobState(baseline);
    if (!possible.some((look) => look !== undefined && formatJobState(look.shown) === said))
      yield `the baseline is ${said}, and the look before the POST showed something else`;
  },
  function* sentAtIsCorrect({ world, posts, isUndisturbed }, { sentAt, endedAt, delivery }) {
    const startedAt = world.runs[0]?.startedAt ?? 0;
    if (sentAt !== null && (Date.parse(sentAt) < startedAt || sentAt > (endedAt ?? '')))
      yield `sent at ${sentAt}, which is not in its time`;
    const areKnown = posts.every(
      ({ firstByteAt, receivedAt }) => firstByteAt !== null && receivedAt !== null,
    );
    const isSent = posts.length > 0 && posts.length === delivery.sends && delivery.verdict !== 'not-sent';
    if (!isUndisturbed || !areKnown || !isSent) return;
    if (!posts.some(({ firstByteAt }) => Math.abs((firstByteAt ?? 0) - Date.parse(sentAt ?? '')) <= 1))
      yield `sentAt is ${String(sentAt)}, and no POST began then`;
  },
  /** By the service's word; once the job was read, a failed baseline read is a delay: what ends it then is a POST, or whenActive. */
  function* rejectionHasAReason({ end, plan, posts, gets, shown }, { delivery }) {
    if (end.type !== 'FollowUpRejected' || delivery.verdict !== 'not-sent' || posts.length > 0) return;
    if (plan.whenActive === 'reject' && shown.some((get) => !isIdle(get.shown))) return;
    if (shown.some(isPoll) || !gets.some(({ answer }) => /^http_40[013]$/.test(answer ?? '')))
      yield 'FollowUpRejected, and nothing has refused it';
  },
  function* unknownDeliveryHasAReason({ end, plan, posts, shown, freshFrom }, receipt) {
    if (end.type !== 'DeliveryUnknown' || !isIdle(receipt.baseline) || plan.whenActive === 'reject') return;
    // A later POST that is refused, or can't be made, ends it as well.
    const last = posts.at(-1);
    const isRefused =
      last?.firstByteAt === null || /^http_(40[013459]|41[035]|422)$/.test(last?.answer ?? '');
    if (!isRefused && !shown.some(({ requestedAt }) => requestedAt >= freshFrom(receipt)))
      yield 'DeliveryUnknown, and nobody has looked';
  },
  function* missingJobHasAReason({ end, plan, gets, posts, shown, isUndisturbed }, { delivery }) {
    if (end.type !== 'JobNotFound') return;
    const heard = gets.filter(({ answer, receivedAt }) => answer === 'http_404' && receivedAt !== null);
    const lastShownAt = Math.max(0, ...shown.map(({ receivedAt }) => receivedAt));
    const since = heard.filter(({ receivedAt }) => (receivedAt ?? 0) > lastShownAt);
    const spanMs = (heard.at(-1)?.requestedAt ?? 0) - (heard[0]?.receivedAt ?? Infinity);
    if (heard.length === 0) yield 'JobNotFound, and there was no 404';
    // A job that was never read is not known: a send that was not permitted does not report what its look has shown.
    else if (delivery.verdict === 'not-sent' && posts.length === 0 && !shown.some(isPoll)) return;
    else if (heard.length < 5) yield `JobNotFound after ${heard.length} answers`;
    else if (isUndisturbed && since.length < 5) yield 'JobNotFound, and the job was shown between the 404s';
    else if (spanMs < plan.maxStalenessMs) yield 'JobNotFound before the 404s have spanned maxStaleness';
  },
  /** There was a last read, and nothing that should have been told. */
  function* deadlineFailureHasAReason({ end, run, plan, world, polls, deadlineAt, isUndisturbed }, receipt) {
    if (end.type !== 'DeadlineExceeded') return;
    if (run.closedAt < deadlineAt) yield `its deadline was ${deadlineAt - run.closedAt} ms away`;
    if (receipt.delivery.verdict !== 'accepted' || !isUndisturbed) return;
    if (!polls.some(({ requestedAt }) => requestedAt >= deadlineAt)) yield 'overdue without a last read';
    const since = Math.max(world.service.life.terminalSince() ?? Infinity, Date.parse(receipt.sentAt ?? ''));
    const { maximumMs, initialMs } = plan.polling;
    const waitMs =
      2 * plan.maxStalenessMs + plan.prLinkTimeoutMs + 2 * (maximumMs + initialMs) + END_DELAY_MS;
    if (world.plan.jobs[0].faults.length === 0 && since + waitMs < deadlineAt)
      yield 'overdue, and the job was at rest for long';
  },
  function* resultHasItsEvidence({ end, plan, posts, shown, isUndisturbed, freshFrom }, receipt) {
    if (!end.result) return;
    const { status, prLink, archivedAt } = end.result;
    const { evidence, baseline } = receipt;
    const wasAtRest = isIdle(baseline);
    if (evidence === null) yield 'a result without evidence';
    if (evidence === 'seen-active') {
      // Without a POST of its own, a reset run reads from its beginning.
      const since = posts.length === 0 ? 0 : Math.min(...posts.map(({ requestedAt }) => requestedAt));
      const isSeen = shown.some((get) => get.requestedAt >= since && get.shown.status === 'active');
      if (!wasAtRest || !isSeen) yield `seen-active, with the baseline ${String(baseline?.status)}`;
    }
    if (evidence === 'status-changed' && (!wasAtRest || status === baseline?.status || status === 'archived'))
      yield `status-changed from ${String(baseline?.status)} to ${status}`;
    if (evidence === null || evidence === 'seen-active' || evidence === 'status-changed') return;
    // What another status interrupts begins anew; an answer that nobody was told does not interrupt.
    const fresh = shown.filter((get) => get.requestedAt >= freshFrom(receipt) && isPoll(get));
    const other = isUndisturbed ? fresh.findLast((get) => get.shown.status !== status) : undefined;
    const same = fresh.filter(
      (get) => get.shown.status === status && get.requestedAt > (other?.requestedAt ?? 0),
    );
    const until = (same[0]?.receivedAt ?? Infinity) + plan.maxStalenessMs;
    if (!same.some(({ requestedAt }) => requestedAt >= until))
      yield `${evidence}, and the status did not hold for maxStaleness`;
    const hasChanged =
      baseline !== null && (prLink !== baseline.prLink || archivedAt !== baseline.archivedAt);
    const expected = hasChanged ? 'job-changed' : wasAtRest ? 'unchanged' : 'active-before';
    if (evidence !== expected)
      yield `${evidence}, with the baseline ${JSON.stringify(baseline)} and the link ${String(prLink)}`;
  },
  /** A result is told by fresh answers, and is the job as it was after the turn of every message. */
  function* resultIsTrue(found, receipt) {
    const { end, plan, world, shown } = found;
    const [{ lagMs, linkLateMs }] = world.plan.jobs;
    if (!end.result) return;
    const { status, prLink } = end.result;
    if (!isIdle(end.result)) yield `a result that is ${status}`;
    const freshAt = found.freshFrom(receipt);
    const endedAt = Date.parse(receipt.endedAt ?? '');
    if (endedAt < freshAt) yield `told ${freshAt - endedAt} ms before an answer could be fresh`;
    const fresh = shown.filter((get) => get.requestedAt >= freshAt && isPoll(get));
    if (fresh.length === 0) yield 'a result, and no fresh answer';
    const turnsEndedAt = Math.max(0, ...messageTurns(found).map((turn) => turn.endedAt ?? Infinity));
    if (turnsEndedAt > endedAt) yield 'the turn of the message ended after the follow-up';
    const from = Math.max(freshAt - lagMs, turnsEndedAt);
    const jobs = changesInEffect(world.service.life.changes(), from, endedAt).map(({ job }) => job);
    const isLate = linkLateMs > 0 && prLink === null;
    if (!jobs.some((job) => job.status === status && (job.prLink === prLink || isLate)))
      yield `the result is ${status} with ${String(prLink)}, and since the turn the job was ${jobs.map((job) => `${job.status} ${String(job.prLink)}`).join(', ')}`;
    if (status !== 'completed' || prLink !== null || endedAt >= found.deadlineAt) return;
    const completed = fresh.filter((get) => get.shown.status === 'completed');
    // A read beside a poll is heard first, and asked for later.
    const settleEnd = Math.min(...completed.map(({ receivedAt }) => receivedAt)) + plan.prLinkTimeoutMs;
    const lookedOn = completed.some((get) => get.shown.prLink === null && get.requestedAt >= settleEnd);
    if (!lookedOn && !found.has('extend')) yield 'a link that is null, and was not waited for';
  },
  /** A delivery that reading has proved: by a fresh answer that shows what counts as a turn. */
  function* readConfirmationIsProven(found, receipt) {
    const { world, shown, plan, isReset } = found;
    const { delivery, baseline } = receipt;
    if (delivery.confirmedBy !== 'read') return;
    if (!isIdle(baseline)) yield `proved by reading, and the baseline is ${String(baseline?.status)}`;
    // A run made by a reset may know of the first POST alone.
    const first = (found.perhapsProcessed[0]?.firstByteAt ?? 0) + plan.maxStalenessMs;
    const freshAt = isReset ? first : found.freshFrom(receipt);
    const isProof = ({ status }: { readonly status: string }) =>
      status === 'active' || [status, baseline?.status].sort().join() === 'completed,failed';
    if (!shown.some((get) => get.requestedAt >= freshAt && isProof(get.shown)))
      yield 'proved by reading, and no fresh answer proves it';
    const mayBeOthers =
      found.has('turn by another client', 'change job') || world.plan.jobs[0].status === 'active';
    if (messageTurns(found).length === 0 && !mayBeOthers && !isReset)
      yield 'proved by reading, and there was no turn';
  },
];

/** How an activity of a history has ended, if that is a send: what is known of no POST is no end. */
function sendEndKind(event: HistoryEvent): string | undefined {
  if (event.type !== 'ActivityTaskCompleted') return undefined;
  const result = fromPayload(event.resolution.completed?.result) as {
    readonly end?: { readonly kind?: string; readonly outcome?: { readonly verdict: string } };
  } | null;
  return result?.end?.outcome?.verdict === 'not-sent' ? undefined : result?.end?.kind;
}

/** Of the message. */
function messageTurns({ world: { service, plan } }: Case) {
  return service.life.turns().filter(({ prompt }) => prompt === plan.request.prompt);
}

function formatJobState({ status, prLink, archivedAt }: NonNullable<Receipt['baseline']>): string {
  return JSON.stringify([status, prLink, archivedAt]);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
