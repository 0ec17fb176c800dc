import type { SendRecord } from '../../../src/contract/send-result';
import type { FollowUpProgress, Receipt } from '../../../src/contract/result';
import type { Request } from '../agent-service';
import { isMachineOperation } from '../operations';
import { START_MS } from '../clock';
import { fromPayload, isActivityEnd } from '../temporal/history';
import {
  type Case,
  END_DELAY_MS,
  changesInEffect,
  isIdle,
  isPoll,
  type ReceiptRule,
  sendEndKind,
  wasNotProcessed,
} from './case';

/** If the heartbeat of a read is late, a second attempt also makes the read. */
const ATTEMPTS = 2;
const HEARTBEAT_MS = 10_000;
/** From the response to a read to the Temporal server that has its report, with slow calls. */
const REPORT_MS = 10_000;
/** Labels in `responseCounts` for which no request was made. */
const LABELS_WITHOUT_REQUEST = new Set(['cooling_down', 'closed', 'no_worker', 'read_failed']);
const IS_ANSWER = /^(http_|active$|completed$|archived$|failed$)/;

/** The possible verdicts for each end of a follow-up: the type of the failure, or `result`. */
const VERDICTS_BY_OUTCOME: Readonly<Record<string, readonly string[]>> = {
  result: ['accepted'],
  FollowUpRejected: ['not-sent', 'rejected'],
  DeliveryUnknown: ['unknown'],
  JobNotFound: ['not-sent', 'accepted', 'unknown'],
  DeadlineExceeded: ['not-sent', 'accepted', 'unknown'],
};

/** For each value of `confirmedBy`, the option `onUnknownDelivery` that it requires. */
const CHOICES: Readonly<Record<string, string>> = { operator: 'ask', assumed: 'assume-delivered' };

/** Rules for the receipt: its fields must match everything that the simulation knows. */
export const RECEIPT_RULES: readonly ReceiptRule[] = [
  /** The verdict fits the end and the requests, and `confirmedBy` fits the verdict and the options. */
  function* verdictIsTrue({ end, plan, posts, decisions }, { delivery: { verdict, confirmedBy } }) {
    const verdicts = VERDICTS_BY_OUTCOME[end.type || end.kind];
    if (end.kind === 'failure' && verdicts === undefined)
      yield `the follow-up failed with the unknown type ${end.type}`;
    else if (verdicts?.includes(verdict) === false)
      yield `the follow-up ended as ${end.type || end.kind} with the verdict ${verdict}`;
    const isProcessed = posts.some(({ processedAt }) => processedAt !== null);
    if ((verdict === 'accepted') !== (confirmedBy !== null))
      yield `the verdict is ${verdict}, and confirmedBy is ${String(confirmedBy)}`;
    if ((verdict === 'not-sent' || verdict === 'rejected') && isProcessed)
      yield `the verdict is ${verdict}, but the message was processed`;
    if (confirmedBy === 'response' && !isProcessed)
      yield 'confirmedBy is response, but no message was processed';
    if (confirmedBy === 'operator' && decisions('delivered').length === 0)
      yield 'confirmedBy is operator, but no operator decided';
    const choice = CHOICES[confirmedBy ?? ''] ?? plan.onUnknownDelivery;
    if (choice !== plan.onUnknownDelivery)
      yield `confirmedBy is ${String(confirmedBy)}, but onUnknownDelivery is ${plan.onUnknownDelivery}`;
  },
  /** `sends` is at least the number of started POSTs, and at most the number of send permissions and of presumed POSTs. */
  function* countsItsSends(
    { world, has, isReset, posts, permissions, manualCompletions, run, end },
    { delivery },
  ) {
    if (world.mayMixUpAttempts) return;
    const { sends, verdict } = delivery;
    const started = posts.filter(({ firstByteAt }) => firstByteAt !== null);
    // After a single reset, the new run counts the POSTs of its history and one POST that the run before may have made.
    const whole = world.runs.filter(({ start }) => start.continuedFromRunId === undefined);
    const isOneReset = world.performedOfKind('reset').length === 1 && whole.length === 2;
    const hasOneEach = world.runs.every(
      ({ runId }) => started.filter((post) => post.runId === runId).length <= 1,
    );
    if ((!isReset || (isOneReset && hasOneEach)) && started.length > sends)
      yield `sends is ${sends}, but ${started.length} POSTs were started (${end.kind})`;
    // A run that a reset made presumes a POST until its history has one. If its send had no permit, it presumes the POST until
    // its end.
    const ends = run.events.map(sendEndKind);
    if (!isReset && ends.includes('reset')) yield 'a send had no permit, although no run was reset';
    const presumes = isReset && (ends.includes('reset') || !ends.includes('posted'));
    // A cancelled send does not report its checkpoint. The record of the send is not known if the description with the heartbeat
    // details was lost or late, or if an attempt was running.
    const isCancelled = run.events.some(({ type }) => type === 'ActivityTaskCanceled');
    const isUnanswered = run.events.some(
      (event) =>
        event.type === 'MarkerRecorded' &&
        (Boolean(event.resolution.failed) ||
          isUnknownRecord(fromPayload(event.resolution.completed?.result))),
    );
    // If the worker of a paused send died, the cancellation is never confirmed.
    const isPending = run.events.some(
      (event) =>
        event.type === 'ActivityTaskCancelRequested' &&
        !run.events.some((other) => isActivityEnd(other) && other.seq === event.seq),
    );
    // The failure of a send's last attempt does not show whether a permission was recorded. An attempt is the last one if the
    // attempts are limited, or if the cancellation of the send was requested.
    const isLastAttempt =
      has('limit attempts') || run.events.some(({ type }) => type === 'ActivityTaskCancelRequested');
    const hasFailed = isLastAttempt && run.events.some(({ type }) => type === 'ActivityTaskFailed');
    const isUnreported = (isCancelled && isUnanswered) || isPending || hasFailed;
    if (sends > permissions.length + manualCompletions + (presumes || isUnreported ? 1 : 0))
      yield `sends is ${sends}, but only ${permissions.length} send permissions were recorded (${end.kind})`;
    if (sends === 0 && verdict !== 'not-sent')
      yield `the verdict is ${verdict}, but sends is 0 (${end.kind})`;
  },
  /**
   * If no POST was requested, `sends` is above 0 only after a failure of a machine, a reset, a manual completion, or a reset of a
   * paused send, whose cancellation may never be confirmed.
   */
  function* countsNoSendWithoutPost({ world, posts, has, isReset, manualCompletions }, { delivery }) {
    const isPausedSendReset = has('pause send') && has('send reset');
    if (posts.length > 0 || isReset || manualCompletions > 0 || isPausedSendReset) return;
    const isWhole = !world.plan.operations.some(({ operation }) => isMachineOperation(operation));
    if (isWhole && delivery.sends > 0) yield `sends is ${delivery.sends}, but no POST was requested`;
  },
  /** A follow-up ends as `DeliveryUnknown` only if `onUnknownDelivery` allows this end. */
  function* unknownDeliveryFollowsOption({ plan, posts, perhapsProcessed, end, isUndisturbed }) {
    const { onUnknownDelivery: choice, whenActive } = plan;
    if (!isUndisturbed || end.type !== 'DeliveryUnknown') return;
    const isSecondRefused = posts.length > 1 && posts.at(-1)?.firstByteAt === null;
    if (choice === 'ask' || choice === 'assume-delivered')
      yield `the follow-up ended as DeliveryUnknown, but onUnknownDelivery is ${choice}`;
    if (choice === 'resend' && perhapsProcessed.length < 2 && whenActive !== 'reject' && !isSecondRefused)
      yield `the follow-up ended as DeliveryUnknown after ${perhapsProcessed.length} POSTs, but onUnknownDelivery is resend`;
  },
  /** Without faults, `responseCounts` has each read since the POST. */
  function* countsEveryRead(
    { polls, perhapsProcessed, isHindered, world, end },
    { responseCounts, delivery },
  ) {
    const [post, ...more] = perhapsProcessed;
    const isOne = post !== undefined && more.length === 0 && world.runs.length === 1 && delivery.sends <= 1;
    // A read that ended too late for the deadline is not reported.
    if (isHindered || !isOne || responseCounts.no_worker !== undefined || end.kind === 'failure') return;
    const since = post.receivedAt ?? Infinity;
    const reads = polls.filter(
      ({ requestedAt, receivedAt }) => requestedAt >= since && receivedAt !== null,
    ).length;
    const counted = Object.entries(responseCounts).map(([label, count]) =>
      LABELS_WITHOUT_REQUEST.has(label) ? 0 : count,
    );
    // An update or a cancellation interrupts the read that is in progress or not yet reported.
    const interruptions = world.log.filter(({ what }) => what === 'countPollReads started');
    const reports = world.log.filter(({ what }) => what === 'pollJob reported');
    const interrupted = polls.filter(({ point, requestedAt, receivedAt }) =>
      interruptions.some(
        ({ at: interruptedAt }) =>
          point === 'poll' &&
          requestedAt <= interruptedAt + START_MS + REPORT_MS &&
          !reports.some(({ at }) => at + START_MS >= (receivedAt ?? Infinity) && at <= interruptedAt),
      ),
    ).length;
    const isSlow = polls.some(
      ({ requestedAt, receivedAt }) => (receivedAt ?? Infinity) - requestedAt > HEARTBEAT_MS,
    );
    // A cancellation also interrupts a single read.
    const lost = interrupted + (isSlow ? ATTEMPTS : 0) + (end.kind === 'cancelled' ? 1 : 0);
    if (sum(counted) > reads || sum(counted) < reads - lost)
      yield `${sum(counted)} reads were counted, but ${reads} were made since the POST`;
  },
  /** Each counted response was received by a worker. */
  function* countedResponsesWereReceived({ polls: made, world, isHindered }, { polls, responseCounts }) {
    // If the worker of a `pollJob` attempt dies, or the attempt's result can't be encoded, the attempt counts as a read without a
    // change.
    const attempts = world.log.filter(({ what }) => what === 'pollJob started').length;
    const receivedPolls = made.filter(
      ({ point, receivedAt }) => point === 'poll' && receivedAt !== null,
    ).length;
    const broken = world.plan.operations.filter(({ operation }) => operation.kind === 'break').length;
    const lost = (isHindered ? Math.max(0, attempts - receivedPolls) : 0) + broken;
    if (!isHindered && responseCounts.no_worker !== undefined)
      yield 'a read had no worker, although no fault occurred';
    if (sum(Object.values(responseCounts)) !== polls)
      yield `polls is ${polls}, but ${sum(Object.values(responseCounts))} responses were counted`;
    for (const [label, count] of Object.entries(responseCounts)) {
      const received = made.filter(
        ({ receivedAt, answer, shown }) => receivedAt !== null && [answer, shown?.status].includes(label),
      );
      if (IS_ANSWER.test(label) && received.length + lost < count)
        yield `${label} was counted ${count} times, but received ${received.length} times`;
    }
  },
  /** After the end, the query `progress` returns the values of the receipt. */
  function* progressMatchesReceipt({ world, run, end }, { delivery, evidence, polls }) {
    const progress = world.progress.get(run) as FollowUpProgress | undefined;
    const reported = JSON.stringify([progress?.delivery, progress?.evidence, progress?.polls]);
    if (progress !== undefined && reported !== JSON.stringify([delivery, evidence, polls]))
      yield `the progress after the end is ${reported}, which differs from the receipt (${end.kind})`;
  },
  /** The baseline is the job that the baseline read right before a POST returned. */
  function* baselineMatchesBaselineRead(
    { manualCompletions, posts, shown, isUndisturbed },
    { baseline, delivery },
  ) {
    if (baseline === null && isUndisturbed && posts.length > 0)
      yield 'a POST was made, but the receipt has no baseline';
    if (baseline === null || manualCompletions > 0) return;
    const baselineReads = shown.filter((get) => !isPoll(get));
    const before = posts.map((post) =>
      baselineReads.findLast(
        ({ receivedAt, runId }) => runId === post.runId && receivedAt <= post.requestedAt,
      ),
    );
    // A worker that died after it received its send permission leaves a baseline without a POST.
    const possible =
      isUndisturbed && posts.length > 0 && delivery.verdict !== 'not-sent' ? before : baselineReads;
    const reported = formatJobState(baseline);
    if (!possible.some((read) => read !== undefined && formatJobState(read.shown) === reported))
      yield `the baseline is ${reported}, but the baseline read before the POST returned another state`;
  },
  /** `sentAt` is between the start and the end and, without faults, is the time at which a POST started. */
  function* sentAtIsCorrect({ world, posts, isUndisturbed }, { sentAt, endedAt, delivery }) {
    const startedAt = world.runs[0]?.startedAt ?? 0;
    if (sentAt !== null && (Date.parse(sentAt) < startedAt || sentAt > (endedAt ?? '')))
      yield `sentAt is ${sentAt}, which is not between the start and the end of the follow-up`;
    const areKnown = posts.every(
      ({ firstByteAt, receivedAt }) => firstByteAt !== null && receivedAt !== null,
    );
    const isSent = posts.length > 0 && posts.length === delivery.sends && delivery.verdict !== 'not-sent';
    if (!isUndisturbed || !areKnown || !isSent) return;
    if (!posts.some(({ firstByteAt }) => Math.abs((firstByteAt ?? 0) - Date.parse(sentAt ?? '')) <= 1))
      yield `sentAt is ${String(sentAt)}, but no POST started at that time`;
  },
  /**
   * Without a POST, `FollowUpRejected` needs a reason: `whenActive: reject`, or a rejected baseline read. A rate limit is not a
   * reason. After the job was read, a rejected read only delays the follow-up.
   */
  function* rejectionHasAReason({ end, plan, posts, gets, shown }, { delivery }) {
    if (end.type !== 'FollowUpRejected' || delivery.verdict !== 'not-sent' || posts.length > 0) return;
    if (plan.whenActive === 'reject' && shown.some((get) => !isIdle(get.shown))) return;
    const isRejected = (get: Request) => /^http_40[03]$/.test(get.answer ?? '') && !wasNotProcessed(get);
    if (shown.some(isPoll) || !gets.some(isRejected))
      yield 'the follow-up ended as FollowUpRejected, but no response rejected it';
  },
  /** `DeliveryUnknown` needs a fresh read, or a later POST that was rejected or not sent. */
  function* unknownDeliveryHasAReason({ end, plan, posts, shown, freshFrom }, receipt) {
    if (end.type !== 'DeliveryUnknown' || !isIdle(receipt.baseline) || plan.whenActive === 'reject') return;
    // A later POST that is rejected, or that could not be sent, also ends the follow-up.
    const last = posts.at(-1);
    const isRejected =
      last?.firstByteAt === null || /^http_(40[013459]|41[035]|422)$/.test(last?.answer ?? '');
    if (!isRejected && !shown.some(({ requestedAt }) => requestedAt >= freshFrom(receipt)))
      yield 'the follow-up ended as DeliveryUnknown without a fresh read';
  },
  /** `JobNotFound` needs one 404 before the job was read, and otherwise five 404s in a row that span `maxStaleness`. */
  function* missingJobHasAReason({ end, plan, gets, posts, shown, isReset, isUndisturbed }, { delivery }) {
    if (end.type !== 'JobNotFound') return;
    const received = gets.filter(({ answer, receivedAt }) => answer === 'http_404' && receivedAt !== null);
    const lastShownAt = Math.max(0, ...shown.map(({ receivedAt }) => receivedAt));
    const since = received.filter(({ receivedAt }) => (receivedAt ?? 0) > lastShownAt);
    const spanMs = (received.at(-1)?.requestedAt ?? 0) - (received[0]?.receivedAt ?? Infinity);
    if (received.length === 0) yield 'the follow-up ended as JobNotFound without a 404';
    // A single 404 suffices before the workflow knows the job. A send without a permission does not report its baseline read. A
    // run that a reset made repeats this end, with the verdict `unknown`.
    else if ((delivery.verdict === 'not-sent' || isReset) && posts.length === 0 && !shown.some(isPoll))
      return;
    else if (received.length < 5) yield `the follow-up ended as JobNotFound after ${received.length} 404s`;
    else if (isUndisturbed && since.length < 5)
      yield 'the follow-up ended as JobNotFound, but a read between the 404s returned the job';
    else if (spanMs < plan.maxStalenessMs)
      yield 'the follow-up ended as JobNotFound before the 404s spanned maxStaleness';
  },
  /** `DeadlineExceeded` comes after the deadline and a last read, and not if the job was idle for a long time. */
  function* deadlineFailureHasAReason({ end, run, plan, world, polls, deadlineAt, isUndisturbed }, receipt) {
    if (end.type !== 'DeadlineExceeded') return;
    if (run.closedAt < deadlineAt)
      yield `the follow-up ended as DeadlineExceeded ${deadlineAt - run.closedAt} ms before the deadline`;
    if (receipt.delivery.verdict !== 'accepted' || !isUndisturbed) return;
    if (!polls.some(({ requestedAt }) => requestedAt >= deadlineAt))
      yield 'the follow-up ended as DeadlineExceeded without a last read';
    const since = Math.max(world.service.life.terminalSince() ?? Infinity, Date.parse(receipt.sentAt ?? ''));
    const { maximumMs, initialMs } = plan.polling;
    const waitMs =
      2 * plan.maxStalenessMs + plan.prLinkTimeoutMs + 2 * (maximumMs + initialMs) + END_DELAY_MS;
    if (world.plan.jobs[0].faults.length === 0 && since + waitMs < deadlineAt)
      yield 'the follow-up ended as DeadlineExceeded, but the job was idle long before the deadline';
  },
  /** The evidence of a result fits the baseline and the reads. */
  function* resultHasItsEvidence({ end, plan, posts, shown, isUndisturbed, freshFrom }, receipt) {
    if (!end.result) return;
    const { status, prLink, archivedAt } = end.result;
    const { evidence, baseline } = receipt;
    const wasIdle = isIdle(baseline);
    if (evidence === null) yield 'the result has no evidence';
    if (evidence === 'seen-active') {
      // A run that a reset made, and that made no POST, reads from its start. A POST without a first byte was not made.
      const started = posts.filter(({ firstByteAt }) => firstByteAt !== null);
      const since = started.length === 0 ? 0 : Math.min(...started.map(({ requestedAt }) => requestedAt));
      const isSeen = shown.some((get) => get.requestedAt >= since && get.shown.status === 'active');
      if (!wasIdle || !isSeen)
        yield `the evidence is seen-active, but the baseline is ${String(baseline?.status)} or no read returned active`;
    }
    if (evidence === 'status-changed' && (!wasIdle || status === baseline?.status || status === 'archived'))
      yield `the evidence is status-changed, but the status changed from ${String(baseline?.status)} to ${status}`;
    if (evidence === null || evidence === 'seen-active' || evidence === 'status-changed') return;
    // Another status restarts the time. A response that was not reported does not restart the time.
    const fresh = shown.filter((get) => get.requestedAt >= freshFrom(receipt) && isPoll(get));
    const other = isUndisturbed ? fresh.findLast((get) => get.shown.status !== status) : undefined;
    const same = fresh.filter(
      (get) => get.shown.status === status && get.requestedAt > (other?.requestedAt ?? 0),
    );
    // After a reset, the response to a read of the earlier run may be received between the reads of the new run.
    const until = Math.min(...same.map(({ receivedAt }) => receivedAt)) + plan.maxStalenessMs;
    if (!same.some(({ requestedAt }) => requestedAt >= until))
      yield `the evidence is ${evidence}, but the status did not stay the same for maxStaleness`;
    const hasChanged =
      baseline !== null && (prLink !== baseline.prLink || archivedAt !== baseline.archivedAt);
    const expected = hasChanged ? 'job-changed' : wasIdle ? 'unchanged' : 'active-before';
    if (evidence !== expected)
      yield `the evidence is ${evidence} instead of ${expected}: the baseline is ${JSON.stringify(baseline)}, and the link is ${String(prLink)}`;
  },
  /** A result comes from a fresh read, and is the job after the turns of all messages of the follow-up. */
  function* resultIsTrue(found, receipt) {
    const { end, plan, world, shown } = found;
    const [{ lagMs, linkLateMs }] = world.plan.jobs;
    if (!end.result) return;
    const { status, prLink } = end.result;
    if (!isIdle(end.result)) yield `the result has the status ${status}, which is not terminal`;
    const freshAt = found.freshFrom(receipt);
    const endedAt = Date.parse(receipt.endedAt ?? '');
    if (endedAt < freshAt) yield `endedAt is ${freshAt - endedAt} ms before the first fresh read`;
    const fresh = shown.filter((get) => get.requestedAt >= freshAt && isPoll(get));
    if (fresh.length === 0) yield 'the result has no fresh read';
    const turnsEndedAt = Math.max(0, ...messageTurns(found).map((turn) => turn.endedAt ?? Infinity));
    if (turnsEndedAt > endedAt) yield 'the turn of the message ended after the follow-up';
    const from = Math.max(freshAt - lagMs, turnsEndedAt);
    const jobs = changesInEffect(world.service.life.changes(), from, endedAt).map(({ job }) => job);
    const isLate = linkLateMs > 0 && prLink === null;
    if (!jobs.some((job) => job.status === status && (job.prLink === prLink || isLate)))
      yield `the result is ${status} with the link ${String(prLink)}, but since the turn the job was ${jobs.map((job) => `${job.status} with ${String(job.prLink)}`).join(', ')}`;
    if (status !== 'completed' || prLink !== null || endedAt >= found.deadlineAt) return;
    // The baseline read of a further send may show the turn too.
    const completed = shown.filter((get) => get.requestedAt >= freshAt && get.shown.status === 'completed');
    // A response can be received before the response to an earlier request.
    const linkWaitEnd = Math.min(...completed.map(({ receivedAt }) => receivedAt)) + plan.prLinkTimeoutMs;
    const hasWaited = completed.some((get) => get.shown.prLink === null && get.requestedAt >= linkWaitEnd);
    if (!hasWaited && !found.has('extend'))
      yield 'the link of the result is null, but the follow-up did not wait for prLinkTimeout';
  },
  /** If `confirmedBy` is `read`, a fresh read shows the turn. */
  function* readConfirmationIsProven(found, receipt) {
    const { world, shown, isReset } = found;
    const { delivery, baseline } = receipt;
    if (delivery.confirmedBy !== 'read') return;
    if (!isIdle(baseline)) yield `confirmedBy is read, but the baseline is ${String(baseline?.status)}`;
    const freshAt = found.freshFrom(receipt);
    const isProof = ({ status }: { readonly status: string }) =>
      status === 'active' || [status, baseline?.status].sort().join() === 'completed,failed';
    if (!shown.some((get) => get.requestedAt >= freshAt && isProof(get.shown)))
      yield 'confirmedBy is read, but no fresh read shows the turn';
    const mayBeOfAnotherClient =
      found.has('turn by another client', 'change job') || world.plan.jobs[0].status === 'active';
    if (messageTurns(found).length === 0 && !mayBeOfAnotherClient && !isReset)
      yield 'confirmedBy is read, but the message started no turn';
  },
];

/** Returns the turns of the follow-up's message. */
function messageTurns({ world: { service, plan } }: Case) {
  return service.life.turns().filter(({ prompt }) => prompt === plan.request.prompt);
}

function formatJobState({ status, prLink, archivedAt }: NonNullable<Receipt['baseline']>): string {
  return JSON.stringify([status, prLink, archivedAt]);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Returns whether a value is the result of `stopSend` if the Temporal server's record of the send is not known. */
function isUnknownRecord(value: unknown): boolean {
  return (value as Partial<SendRecord> | null | undefined)?.kind === 'unknown';
}
