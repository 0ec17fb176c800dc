import { FOLLOW_UP_WORKFLOW } from '../../../src/contract/names';
import { type FollowUpProgress, OPEN_PHASES } from '../../../src/contract/result';
import type { Request } from '../agent-service';
import { START_MS } from '../clock';
import { fromPayload, isActivityEnd } from '../temporal/history';
import type { Run } from '../temporal/run';
import { END_DELAY_MS, isIdle, isPoll, MAX_PERMISSION_AGE_MS, type Rule } from './case';

/** The maximum wait of a task in its task queue, unless a rate limit holds the queue. */
const QUEUE_MS = 8_000;
/** The time from a response until the workflow receives its report. */
const REPORT_DELAY_MS = 15_000;
/** The maximum time between the deadline and the end. It is longer than the total of all delays that faults cause. */
const MAX_OVERRUN_MS = 3 * 3_600_000;
/** The number of history events: of a run without requests, and in addition of each request with a timer and an activity. */
const EVENTS = { atMost: 30, ofRequest: 14 };
/** The events of a timer, a read activity and an update, with the workflow tasks of each. */
const MAX_EVENTS_AFTER_SUGGESTION = 40;

const FINAL_PHASES = { result: 'done', failure: 'failed', cancelled: 'cancelled' };

/** Rules for the behavior of a follow-up, independent of its receipt. */
export const RULES: readonly Rule[] = [
  /** At most one POST may be processed, unless the caller chose `resend` or an operator decided `not-delivered` for this run. */
  function* atMostOnce({ world, plan, perhapsProcessed, decisions }) {
    if (world.mayMixUpAttempts) return;
    for (const { runId, start } of world.runs) {
      const isFirst = runId === start.firstRunId;
      const posts = perhapsProcessed.filter((post) => post.runId === runId);
      // A decision that names no run holds for the first run.
      const decided = decisions('not-delivered').filter(({ operation, run }) =>
        operation.names === 'latest' ? run?.runId === runId : isFirst,
      );
      const resent = plan.onUnknownDelivery === 'resend' ? 1 : 0;
      const allowed = decided.length + (isFirst ? 1 + resent : 0);
      if (posts.length > allowed)
        yield `${posts.length} POSTs of ${runId} may have been processed, but ${allowed} were allowed`;
    }
  },
  /** Each POST follows a baseline read of the same attempt, and is made only if `whenActive` allows a message to the job. */
  function* postFollowsBaselineRead({ posts, shown, plan }) {
    for (const { number, attempt, requestedAt } of posts) {
      const read = shown.findLast((get) => get.attempt === attempt && get.receivedAt <= requestedAt);
      if (read === undefined) yield `POST ${number} has no baseline read in its attempt`;
      else if (plan.whenActive !== 'send' && !isIdle(read.shown))
        yield `POST ${number} was made while the job was ${read.shown.status}, although whenActive is ${plan.whenActive}`;
    }
  },
  /** No further POST is made if its baseline read shows the turn of an earlier POST of unknown delivery. */
  function* noPostAfterShownTurn({ run, posts, perhapsProcessed, shown, isReset, manualCompletions }) {
    // A send that ended without a report may have lost its baseline.
    const isUnreported = run.events.some(
      (event) => isActivityEnd(event) && event.type !== 'ActivityTaskCompleted' && isSend(run, event.seq),
    );
    if (isReset || manualCompletions > 0 || isUnreported) return;
    const findBaseline = ({ attempt, requestedAt }: Request) =>
      shown.findLast((get) => get.attempt === attempt && get.receivedAt <= requestedAt)?.shown;
    for (const post of posts.filter(({ firstByteAt }) => firstByteAt !== null)) {
      const earlier = perhapsProcessed.findLast(({ number }) => number < post.number);
      const [before, now] = [earlier && findBaseline(earlier), findBaseline(post)];
      if (before === undefined || now === undefined || !isIdle(before)) continue;
      if (now.status === 'active' || [before.status, now.status].sort().join() === 'completed,failed')
        yield `POST ${post.number} was made, although the job changed from ${before.status} to ${now.status} after an earlier POST`;
    }
  },
  /** Each POST has a send permission that is at most ten seconds old. */
  function* permissionNotExpired({ has, permissions, posts }) {
    // If a machine was suspended and its wall clock was set back, both of its clocks are wrong.
    if (has('freeze') && has('wrong clock')) return;
    for (const { number, requestedAt, firstByteAt, worker } of posts) {
      const permission = permissions.findLast(
        ({ at, who }) => who === worker && at + START_MS <= requestedAt,
      );
      const age = (firstByteAt ?? 0) - (permission?.at ?? NaN) - START_MS;
      if (permission === undefined) yield `POST ${number} of ${worker} has no send permission`;
      else if (age > MAX_PERMISSION_AGE_MS) yield `POST ${number} starts ${age} ms after its send permission`;
    }
  },
  /** A send that is paused before its baseline read has ended makes no POST until it is unpaused. The same holds for other attempts. */
  function* waitsWhilePaused({ world, has, isReset, manualCompletions, gets, posts }) {
    // A worker that receives no response does not know of the pause, and a send without a further attempt ends.
    if (has('lose', 'server unavailable', 'limit attempts') || isReset || manualCompletions > 0) return;
    for (const { attempt, from, until } of world.pauses) {
      if (gets.some((get) => get.attempt === attempt && (get.receivedAt ?? Infinity) <= from)) continue;
      // The activity function may have ended without a baseline read, because another follow-up holds the job lock.
      const sends = world.log.filter(
        ({ at, what }) => at + START_MS <= from && /^sendMessage (started|ended)$/.test(what),
      );
      if (sends.at(-1)?.what === 'sendMessage ended') continue;
      const post = posts.find(({ requestedAt }) => requestedAt > from && requestedAt < until);
      if (post !== undefined) yield `POST ${post.number} was made while the send was paused`;
    }
  },
  /**
   * `pollNow` returns after a read that was requested later than the update, after a read that another client or no worker
   * completed, or with the progress of a follow-up that has ended.
   */
  function* pollNowReads({ world, gets, has }) {
    if (has('hold queue')) return;
    for (const { at, endedAt, answer } of world.performedOfKind('poll now')) {
      if (answer?.kind !== 'answered') continue;
      const { phase, lastResponse } = fromPayload(answer.result) as FollowUpProgress;
      const isRead = gets.some(({ requestedAt }) => requestedAt >= at && requestedAt <= endedAt);
      // While another follow-up holds the job lock, the follow-up makes no read, and the progress shows the holder.
      const isLocked = world.log.some(
        (event) =>
          event.what === 'waitForJobLock started' &&
          event.at + START_MS >= at &&
          event.at + START_MS <= endedAt + REPORT_DELAY_MS,
      );
      const isWithoutWorker = lastResponse?.startsWith('no worker completed the read') === true;
      const isByOtherClient = world
        .performedOfKind('complete by hand')
        .some((completion) => completion.at >= at && completion.at <= endedAt);
      if (!isRead && !isWithoutWorker && !isByOtherClient && !isLocked && OPEN_PHASES.includes(phase))
        yield 'pollNow returned without a read';
    }
  },
  /** An update interrupts a wait and `pollJob`, and a cancellation also interrupts a read. Both only wait for a POST in progress. */
  function* respondsSoon({ world, run, isHindered }) {
    if (isHindered) return;
    for (const { at, endedAt } of world.performedOfKind('poll now'))
      if (endedAt - at > END_DELAY_MS) yield `pollNow returned after ${endedAt - at} ms`;
    for (const cancel of world.performedOfKind('cancel')) {
      // A workflow with a start delay receives no task before the delay has passed.
      const respondsFrom = Math.max(cancel.at, run.startedAt + world.plan.startDelayMs);
      if (cancel.run === run && run.closedAt - respondsFrom > END_DELAY_MS)
        yield `the follow-up ended ${run.closedAt - cancel.at} ms after it was cancelled`;
    }
  },
  /** Each accepted update is completed, unless the run is terminated. */
  function* acceptedUpdatesAreAnswered({ world }) {
    for (const { status, events } of world.runs) {
      if (status === 'WorkflowExecutionTerminated') continue;
      const idsOf = (wanted: string) =>
        events.flatMap((event) => ('updateId' in event && event.type === wanted ? [event.updateId] : []));
      const answered = idsOf('WorkflowExecutionUpdateCompleted');
      for (const id of idsOf('WorkflowExecutionUpdateAccepted'))
        if (!answered.includes(id)) yield `${id} was accepted, but not completed`;
    }
  },
  /** No update is lost in a workflow task that the Temporal server rejects. If faults occur, the last update of a run may be lost. */
  function* updatesAreNotLost({ world, isHindered, wasOverAt }) {
    for (const update of world.performed) {
      const { operation, answer } = update;
      const isLost = answer?.kind === 'aborted' && answer.reason === 'the workflow task failed';
      if (isLost && !(isHindered && wasOverAt(update))) yield `the update “${operation.kind}” was lost`;
    }
  },
  /** A decision is accepted once for each unknown delivery, and only in the phase `needs-decision`. */
  function* oneDecisionAtATime({ world, isReset, isHindered }) {
    if (isReset) return;
    const decisions = world.performedOfKind('decide').filter(({ answer }) => answer?.kind === 'answered');
    const phases = world.log.filter(({ what }) => what.startsWith('phase '));
    const asked = phases.flatMap(({ at, what }, index) =>
      what === 'phase needs-decision' ? [{ from: at, to: phases[index + 1]?.at ?? Infinity }] : [],
    );
    if (decisions.length > asked.length)
      yield `${decisions.length} decisions were accepted, but the follow-up needed ${asked.length}`;
    // If a worker is lost, the phase that it logged may not be recorded, and the phase `needs-decision` then continues.
    const lossMs = isHindered ? END_DELAY_MS : 0;
    for (const { at, endedAt } of decisions)
      if (!asked.some(({ from, to }) => from + START_MS <= endedAt && to + START_MS + lossMs >= at))
        yield 'a decision was accepted outside of the phase needs-decision';
  },
  /** Only a follow-up with `onUnknownDelivery: ask` enters the phase `needs-decision`. */
  function* decisionOnlyWithAsk({ plan, hasEntered }) {
    if (plan.onUnknownDelivery !== 'ask' && hasEntered('needs-decision'))
      yield `the follow-up needed a decision, although onUnknownDelivery is ${plan.onUnknownDelivery}`;
  },
  /** Without faults, a follow-up ends soon after its deadline. */
  function* endsBeforeDeadline({ run, latestDeadlineAt, isHindered }) {
    if (!isHindered && run.closedAt > latestDeadlineAt + END_DELAY_MS)
      yield `the follow-up ended ${run.closedAt - latestDeadlineAt} ms after its deadline`;
  },
  /** No run waits indefinitely, even after faults. Most faults last at most ten minutes. */
  function* runEnds({ world, latestDeadlineAt }) {
    for (const { runId, startedAt, closedAt } of world.runs)
      if (closedAt > Math.max(startedAt, latestDeadlineAt) + MAX_OVERRUN_MS)
        yield `${runId} ended hours after its deadline`;
  },
  /** Only a response of the agent service leads to the phase `unauthorized`, because a gateway's page does not show a rejected key. */
  function* unauthorizedHasAReason({ hasEntered, world }) {
    const { requests } = world.service;
    if (hasEntered('unauthorized') && !requests.some(({ answer }) => /^http_40[13]$/.test(answer ?? '')))
      yield 'the follow-up was unauthorized, but the agent service did not reject the key';
  },
  /** No POST starts after the deadline. */
  function* sendsNothingAfterItsDeadline({ world, posts, latestDeadlineAt }) {
    // The worker calculates the Temporal server's time from the time at which the attempt was queued. This clock does not count the
    // time in the queue, a freeze before the activity's code runs, or the time for which the machine is suspended.
    const isClockLate = world.plan.operations.some(
      ({ at, operation }) =>
        (operation.kind === 'hold queue' && operation.queue === 'sends') ||
        (operation.kind === 'freeze' && (operation.suspended || !/^(permission|post) /.test(at))),
    );
    if (isClockLate) return;
    for (const { number, firstByteAt } of posts) {
      const lateMs = (firstByteAt ?? 0) - latestDeadlineAt;
      if (lateMs > QUEUE_MS) yield `POST ${number} starts ${lateMs} ms after the deadline`;
    }
  },
  /** With `whenActive: wait`, the job is read and the message sent only while the follow-up holds the job lock. */
  function* sendsWithTheLock({ world, gets, posts, plan, isReset, has }) {
    // An activity may outlive its run or its completion by another client. The lock is then released during the POST.
    if (plan.whenActive !== 'wait' || isReset || has('terminate') || has('complete by hand')) return;
    // An attempt that was frozen or had no connection to the Temporal server may read the job after the follow-up has ended.
    const end = world.log.find(({ what }) => /^phase (done|failed|cancelled)$/.test(what));
    const endedAt = START_MS + (end?.at ?? Infinity);
    const baselineReads = gets
      .filter((get) => !isPoll(get) && get.requestedAt < endedAt)
      .map(({ number, requestedAt }) => ({ number, at: requestedAt }));
    const sent = posts.map(({ number, firstByteAt }) => ({ number, at: firstByteAt ?? Infinity }));
    for (const { number, at } of [...baselineReads, ...sent])
      if (at !== Infinity && !world.locks.some((lock) => lock.startedAt <= at && lock.closedAt >= at))
        yield `request ${number} was made without the job lock`;
  },
  /** The follow-up acquires the job lock of another follow-up when the lock is free, and not before. */
  function* waitsForTheLock({ world, run, plan, posts, latestDeadlineAt, isHindered, isReset }) {
    const { lock } = world.plan;
    const [first] = world.locks;
    const freeAt = lock === null ? START_MS : lock.end === 'never' ? Infinity : START_MS + lock.heldMs;
    if (first !== undefined && first.startedAt < freeAt)
      yield `the job lock was acquired ${freeAt - first.startedAt} ms before its holder ended`;
    // Another attempt may follow if the response to the first one was lost.
    const waits = world.log.filter(
      ({ at, what }) =>
        what === 'waitForJobLock started' && at + START_MS > (first?.startedAt ?? Infinity) + END_DELAY_MS,
    );
    if (waits.length > 2 && !isReset) yield 'the follow-up waited for the job lock that it held';
    if (isHindered || plan.whenActive !== 'wait' || run.closedAt < latestDeadlineAt || posts.length > 0)
      return;
    if (first === undefined && freeAt + END_DELAY_MS < latestDeadlineAt)
      yield 'the job lock was free, but the follow-up did not acquire it';
  },
  /** The job lock is released in the last workflow task. Without faults, no lock stays open. */
  function* releasesItsLock({ world, isHindered, run }) {
    if (isHindered) return;
    for (const { runId, isOpen, closedAt } of world.locks)
      if (isOpen) yield `the job lock ${runId} was still held after the end of the follow-up`;
      else if (closedAt < run.closedAt - REPORT_DELAY_MS)
        yield `the job lock ${runId} was released before the end of the follow-up`;
  },
  /** Only a follow-up that a client cancelled ends as cancelled. */
  function* cancellationWasRequested({ world, end }) {
    if (end.kind === 'cancelled' && world.performedOfKind('cancel').length === 0)
      yield 'the follow-up ended as cancelled, but no client cancelled it';
  },
  /** A run ends in the workflow task that receives the cancellation, or waits for its POST. The last search attributes show the end. */
  function* cancellationEndsRun({ world }) {
    for (const { events, start, status } of world.runs) {
      const types = events.map(({ type }) => type);
      const asked = types.indexOf('WorkflowExecutionCancelRequested');
      if (asked < 0 || start.workflowType !== FOLLOW_UP_WORKFLOW) continue;
      const until = types.slice(asked, types.lastIndexOf('UpsertWorkflowSearchAttributes'));
      const isLate = until.filter((type) => type === 'WorkflowTaskCompleted').length > 1;
      if ((isLate ? /Completed|Failed|AsNew/ : /AsNew/).test(status))
        yield `${status}, although the run was cancelled`;
    }
  },
  /** The search attributes show the final phase and the outcome. */
  function* searchAttributesMatchOutcome({ run, end: { kind, type, result, receipt } }) {
    const { FollowUpPhase, FollowUpOutcome } = run.searchAttributes;
    const phase = String(fromPayload(FollowUpPhase));
    const outcome = JSON.stringify(fromPayload(FollowUpOutcome));
    if (kind !== 'terminated' && kind !== 'open' && phase !== FINAL_PHASES[kind])
      yield `the end is ${kind}, but the list shows the phase ${phase}`;
    const how = result?.status ?? (kind === 'failure' ? type : 'cancelled');
    const ended = JSON.stringify(
      receipt && [how, receipt.delivery.verdict, ...(receipt.evidence === null ? [] : [receipt.evidence])],
    );
    if (outcome !== ended) yield `the outcome is ${ended}, but the list shows ${outcome}`;
  },
];

/** Rules for worlds with `isUndisturbed`. */
export const UNDISTURBED_RULES: readonly Rule[] = [
  /** With `whenActive: reject`, a baseline read of a job that is not idle is the last request, if no POST was made. */
  function* rejectsAtOnce({ world, plan, shown, posts }) {
    const held = shown.find((get) => !isPoll(get) && !isIdle(get.shown));
    if (plan.whenActive !== 'reject' || posts.length > 0 || held === undefined) return;
    const next = world.service.requests.find(({ requestedAt }) => requestedAt > held.receivedAt);
    if (next !== undefined)
      yield `request ${next.number} was made after the baseline read of an active job, although whenActive is reject`;
  },
  /** After a 429 or 403 with `Retry-After`, the next request with this method waits for that time, between 1 second and 1 hour. */
  function* honoursRetryAfter({ plan, run, posts, gets, deadlineAt }) {
    for (const requests of [posts, gets])
      for (const [index, { answer, receivedAt, retryAfter }] of requests.entries()) {
        const isLimited = answer === 'http_429' || answer === 'http_403';
        if (!isLimited || receivedAt === null || !/^-?\d+$/.test(retryAfter ?? '')) continue;
        const next = requests[index + 1];
        const waitMs = Math.max(1_000, Math.min(3_600_000, Number(retryAfter) * 1_000));
        const waited = (next?.requestedAt ?? run.closedAt) - receivedAt;
        if (next !== undefined && waited < waitMs && next.requestedAt < deadlineAt)
          yield `the next request came ${waited} ms after a response that required a wait of ${waitMs} ms`;
        // Jitter makes the wait up to 50% longer.
        if (requests === gets && waited > 1.5 * waitMs + plan.polling.maximumMs + END_DELAY_MS)
          yield `the next read was late: it came ${waited} ms after a response that required a wait of ${waitMs} ms`;
      }
  },
  /** After a POST of unknown delivery, the job is read soon, because a `Retry-After` on a POST does not delay reads. */
  function* readsSoonAfterUnknownPost({ plan, run, posts, gets, shown }) {
    if (gets.some(({ answer, retryAfter }) => answer === 'http_429' || retryAfter !== null)) return;
    for (const { answer, receivedAt, retryAfter, attempt } of posts) {
      if (answer !== 'http_503' || retryAfter === null || receivedAt === null) continue;
      if (!isIdle(shown.findLast((get) => get.attempt === attempt)?.shown)) continue;
      const next = gets.find(({ requestedAt }) => requestedAt >= receivedAt);
      const waited = (next?.requestedAt ?? run.closedAt) - receivedAt;
      if (waited > plan.maxStalenessMs + 2 * plan.polling.initialMs + END_DELAY_MS)
        yield `${waited} ms passed without a read after a 503 on the POST`;
    }
  },
  /** After a read returned `active`, the next read is the first fresh one, unless the follow-up needs a decision. */
  function* readsOnlyToDecide({ posts, polls, shown, plan, deadlineAt, hasEntered }) {
    const [post, ...more] = posts;
    if (more.length > 0 || typeof post?.receivedAt !== 'number' || hasEntered('needs-decision')) return;
    const { receivedAt } = post;
    const active = shown.find(
      (read) => isPoll(read) && read.requestedAt > receivedAt && read.shown.status === 'active',
    );
    const freshAt = Math.min(receivedAt + plan.maxStalenessMs, deadlineAt);
    const idle = polls.find(
      ({ requestedAt }) =>
        requestedAt > Math.max(receivedAt, active?.receivedAt ?? Infinity) && requestedAt < freshAt,
    );
    if (idle !== undefined) yield `read ${idle.number} can't decide anything, because it is not fresh`;
  },
  /** `pollJob` never reads more often than at the initial interval. Only its last read comes earlier, when it decides something. */
  function* pollsAtItsInterval({ plan, gets }) {
    const leastMs = plan.polling.initialMs * (1 - plan.polling.jitter) - 1;
    const isSameActivity = (one: Request | undefined, other: Request) =>
      one?.attempt.replace(/[^/]*$/, '') === other.attempt.replace(/[^/]*$/, '');
    for (const [index, get] of gets.entries()) {
      const { number, requestedAt } = get;
      const before = gets[index - 1];
      if (!isSameActivity(before, get) || !isSameActivity(gets[index + 1], get)) continue;
      if (get.point !== 'poll' || typeof before?.receivedAt !== 'number') continue;
      if (requestedAt - before.receivedAt < leastMs)
        yield `poll ${number} came ${requestedAt - before.receivedAt} ms after the previous poll`;
    }
  },
  /** Five 404s in a row that span `maxStaleness` end the follow-up, unless it only waits for the link. */
  function* missingJobEndsFollowUp({ world, plan, hasEntered }) {
    if (hasEntered('waiting-for-link')) return;
    let notFound: Request[] = [];
    for (const request of world.service.requests) {
      const spanMs = (notFound.at(-1)?.requestedAt ?? 0) - (notFound[0]?.receivedAt ?? 0) - REPORT_DELAY_MS;
      if (notFound.length >= 5 && spanMs >= plan.maxStalenessMs)
        yield `request ${request.number} was made after ${notFound.length} 404s in a row`;
      const isNotFound = isPoll(request) && request.answer === 'http_404' && request.receivedAt !== null;
      notFound = isNotFound ? [...notFound, request] : [];
    }
  },
  /** After the delivery, a run continues as new soon after the Temporal server suggests it. */
  function* continuesAsNew({ world, isHindered }) {
    if (isHindered) return;
    for (const [index, { runId, start, events }] of world.runs.entries()) {
      const watching = world.log.find(({ who, what }) => who === runId && what === 'follow-up is watching');
      const deliveredAt = start.continuedFromRunId === undefined ? (watching?.at ?? Infinity) + START_MS : 0;
      const suggestedFrom = world.plan.suggestFrom * 2 ** index;
      const late = events.filter(({ id, at }) => id > suggestedFrom && at >= deliveredAt).length;
      if (late > MAX_EVENTS_AFTER_SUGGESTION)
        yield `${runId} continued for ${late} events after the Temporal server had suggested continue-as-new`;
    }
  },
  /** The history grows only with the reads, including reads that a cool-down holds back. No other event wakes the workflow. */
  function* historyIsBounded({ world }) {
    for (const { runId, events } of world.runs) {
      const requests = world.service.requests.filter((request) => request.runId === runId).length;
      // A wait for the job lock makes no request.
      const activities = events.filter(
        (event) =>
          'activity' in event && ['getJob', 'waitForJobLock'].includes(event.activity.activityType ?? ''),
      ).length;
      if (events.length > EVENTS.atMost + EVENTS.ofRequest * Math.max(requests, activities))
        yield `${runId} has ${events.length} events, but made only ${requests} requests`;
    }
  },
];

/** Returns whether the activity with a number is a send. */
function isSend({ events }: Run, seq: number): boolean {
  return events.some(
    (event) => 'activity' in event && event.seq === seq && event.activity.activityType === 'sendMessage',
  );
}
