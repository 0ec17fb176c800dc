import { FOLLOW_UP_WORKFLOW } from '../../../src/contract/names';
import type { Request } from '../agent-service';
import { START_MS } from '../clock';
import { fromPayload } from '../temporal/history';
import { END_DELAY_MS, isIdle, isPoll, type Rule } from './case';

const MAX_PERMISSION_AGE_MS = 10_000;
/** For so long a task waits in its queue, if no limit holds it. */
const QUEUE_MS = 8_000;
/** From an answer to the workflow that hears of it. */
const REPORT_DELAY_MS = 15_000;
/** Longer than all that hinders a follow-up. */
const MAX_OVERRUN_MS = 3 * 3_600_000;
/** Of a run that makes no request, and of one request by a timer and an activity. */
const EVENTS = { atMost: 30, ofRequest: 14 };

const FINAL_PHASES = { result: 'done', failure: 'failed', cancelled: 'cancelled' };

/** What a follow-up does, whatever it says in the end. */
export const RULES: readonly Rule[] = [
  /** At most one POST, unless `resend` was asked for or an operator has decided so for this very run. */
  function* atMostOnce({ world, plan, perhapsProcessed, decisions }) {
    for (const { runId, start } of world.runs) {
      const isFirst = runId === start.firstRunId;
      const posts = perhapsProcessed.filter((post) => post.runId === runId);
      // A decision names a run; without a name, it is for the first one.
      const decided = decisions('not-delivered').filter(({ operation, run }) =>
        operation.names === 'latest' ? run?.runId === runId : isFirst,
      );
      const resent = plan.onUnknownDelivery === 'resend' ? 1 : 0;
      const allowed = decided.length + (isFirst ? 1 + resent : 0);
      if (posts.length > allowed)
        yield `${posts.length} POSTs of ${runId} may have been processed, and ${allowed} were allowed`;
    }
  },
  /** Each POST is made right after a look of the same activity at the job, and to a job that may get a message. */
  function* postFollowsBaselineRead({ posts, shown, plan }) {
    for (const { number, attempt, requestedAt } of posts) {
      const look = shown.findLast((get) => get.attempt === attempt && get.receivedAt <= requestedAt);
      if (look === undefined) yield `POST ${number} without a look of its own before`;
      else if (plan.whenActive !== 'send' && !isIdle(look.shown))
        yield `POST ${number} to a job that was ${look.shown.status}, and whenActive is ${plan.whenActive}`;
    }
  },
  /** No permission lasts longer than ten seconds. */
  function* permissionNotExpired({ has, permissions, posts }) {
    // Both clocks lie where a machine was suspended and its wall clock was set back meanwhile.
    if (has('freeze') && has('wrong clock')) return;
    for (const { number, requestedAt, firstByteAt, worker } of posts) {
      const given = permissions.findLast(({ at, who }) => who === worker && at + START_MS <= requestedAt);
      const age = (firstByteAt ?? 0) - (given?.at ?? NaN) - START_MS;
      if (given === undefined) yield `POST ${number} of ${worker} without a permission`;
      else if (age > MAX_PERMISSION_AGE_MS) yield `POST ${number} begins ${age} ms after its permission`;
    }
  },
  /** A send that is paused before its look has ended makes no POST until it goes on; nor does another one in its place. */
  function* waitsWhilePaused({ world, has, isReset, manualCompletions, gets, posts }) {
    // Whoever gets no answer does not know of the pause, and without a further attempt it has ended.
    if (has('lose', 'server unavailable', 'limit attempts') || isReset || manualCompletions > 0) return;
    for (const { attempt, from, until } of world.pauses) {
      if (gets.some((get) => get.attempt === attempt && (get.receivedAt ?? Infinity) <= from)) continue;
      // Its activity function may have ended without a look: another follow-up holds the job lock.
      const sends = world.log.filter(
        ({ at, what }) => at + START_MS <= from && /^sendMessage (started|over)$/.test(what),
      );
      if (sends.at(-1)?.what === 'sendMessage over') continue;
      const post = posts.find(({ requestedAt }) => requestedAt > from && requestedAt < until);
      if (post !== undefined) yield `POST ${post.number} while the send is paused`;
    }
  },
  /** Whoever has asked for a read gets one that was asked for later; or is told that no worker answers. */
  function* pollNowReads({ world, gets, has, wasOverAt }) {
    if (has('hold queue')) return;
    for (const update of world.performedOfKind('poll now')) {
      const isRead = gets.some(
        ({ requestedAt }) => requestedAt >= update.at && requestedAt <= update.endedAt,
      );
      // While another follow-up holds the job lock, there is nothing to read, and the progress shows this.
      const isLocked = world.log.some(
        ({ at, what }) =>
          what === 'waitForJobLock started' &&
          at + START_MS >= update.at &&
          at + START_MS <= update.endedAt + REPORT_DELAY_MS,
      );
      if (isLocked) continue;
      if (update.answer?.kind === 'answered' && !isRead && !wasOverAt(update))
        yield 'pollNow was answered, and nothing was read';
    }
  },
  /** An update interrupts a wait and a poll, and a cancellation also a read; only a request in progress is awaited. */
  function* respondsSoon({ world, run, isHindered }) {
    if (isHindered) return;
    for (const { at, endedAt } of world.performedOfKind('poll now'))
      if (endedAt - at > END_DELAY_MS) yield `pollNow was answered after ${endedAt - at} ms`;
    for (const cancel of world.performedOfKind('cancel'))
      if (cancel.run === run && run.closedAt - cancel.at > END_DELAY_MS)
        yield `it ended ${run.closedAt - cancel.at} ms after it was cancelled`;
  },
  function* acceptedUpdatesAreAnswered({ world }) {
    for (const { status, events } of world.runs) {
      if (status === 'WorkflowExecutionTerminated') continue;
      const idsOf = (wanted: string) =>
        events.flatMap((event) => ('updateId' in event && event.type === wanted ? [event.updateId] : []));
      const answered = idsOf('WorkflowExecutionUpdateCompleted');
      for (const id of idsOf('WorkflowExecutionUpdateAccepted'))
        if (!answered.includes(id)) yield `${id} was accepted, and never answered`;
    }
  },
  /** None is lost in a task that the server refuses; where something hinders it, the last one may be. */
  function* updatesAreNotLost({ world, isHindered, wasOverAt }) {
    for (const update of world.performed) {
      const { operation, answer } = update;
      const isLost = answer?.kind === 'aborted' && answer.reason === 'the workflow task failed';
      if (isLost && !(isHindered && wasOverAt(update))) yield `${operation.kind} was lost`;
    }
  },
  /** An unknown delivery is decided once, and while somebody is asked. */
  function* oneDecisionAtATime({ world, isReset }) {
    if (isReset) return;
    const decisions = world.performedOfKind('decide').filter(({ answer }) => answer?.kind === 'answered');
    const phases = world.log.filter(({ what }) => what.startsWith('phase '));
    const asked = phases.flatMap(({ at, what }, index) =>
      what === 'phase needs-decision' ? [{ from: at, to: phases[index + 1]?.at ?? Infinity }] : [],
    );
    if (decisions.length > asked.length)
      yield `${decisions.length} decisions were taken, and ${asked.length} were asked for`;
    for (const { at, endedAt } of decisions)
      if (!asked.some(({ from, to }) => from + START_MS <= endedAt && to + START_MS >= at))
        yield 'a decision was taken before or after somebody was asked';
  },
  function* decisionOnlyWithAsk({ plan, hasEntered }) {
    if (plan.onUnknownDelivery !== 'ask' && hasEntered('needs-decision'))
      yield `somebody was asked, and the choice is ${plan.onUnknownDelivery}`;
  },
  /** Nothing lasts much longer than its deadline. */
  function* endsBeforeDeadline({ run, latestDeadlineAt, isHindered }) {
    if (!isHindered && run.closedAt > latestDeadlineAt + END_DELAY_MS)
      yield `it ended ${run.closedAt - latestDeadlineAt} ms after its deadline`;
  },
  /** Nothing waits indefinitely, whatever has happened: machines are away for ten minutes at most. */
  function* runEnds({ world, latestDeadlineAt }) {
    for (const { runId, startedAt, closedAt } of world.runs)
      if (closedAt > Math.max(startedAt, latestDeadlineAt) + MAX_OVERRUN_MS)
        yield `${runId} ended hours after its deadline`;
  },
  /** Only the service refuses a key: a gateway's page says nothing of it. */
  function* unauthorizedHasAReason({ hasEntered, world }) {
    const { requests } = world.service;
    if (hasEntered('unauthorized') && !requests.some(({ answer }) => /^http_40[13]$/.test(answer ?? '')))
      yield 'unauthorized, and the service has not refused the key';
  },
  /** No message is sent after the deadline: the permission of a POST is requested before it. */
  function* sendsNothingAfterItsDeadline({ world, posts, latestDeadlineAt }) {
    // The worker goes by the Temporal server's clock, which it knows from the time at which the attempt was queued.
    const isHeld = world.plan.operations.some(
      ({ operation }) => operation.kind === 'hold queue' && operation.queue === 'sends',
    );
    if (isHeld) return;
    const asked = world.log.filter(({ what }) => what === 'permission asked');
    for (const { number, requestedAt, worker } of posts) {
      const permission = asked.findLast(({ at, who }) => who === worker && at + START_MS <= requestedAt);
      const lateMs = (permission?.at ?? 0) + START_MS - latestDeadlineAt;
      if (lateMs > QUEUE_MS)
        yield `the permission of POST ${number} is requested ${lateMs} ms after the deadline`;
    }
  },
  /** With `whenActive: wait`, the job is read and the message sent only while the follow-up holds the job lock. */
  function* sendsWithTheLock({ world, gets, posts, plan, isReset, has }) {
    // An activity may outlive its run, whose lock the next follow-up acquires.
    if (plan.whenActive !== 'wait' || isReset || has('terminate')) return;
    const baselineReads = gets
      .filter((get) => !isPoll(get))
      .map(({ number, requestedAt }) => ({ number, at: requestedAt }));
    const sent = posts.map(({ number, firstByteAt }) => ({ number, at: firstByteAt ?? Infinity }));
    for (const { number, at } of [...baselineReads, ...sent])
      if (at !== Infinity && !world.locks.some((lock) => lock.startedAt <= at && lock.closedAt >= at))
        yield `request ${number} without the job lock`;
  },
  /** A lock that another follow-up holds is acquired when it is free, and not before. */
  function* waitsForTheLock({ world, run, plan, posts, latestDeadlineAt, isHindered, isReset }) {
    const { lock } = world.plan;
    const [first] = world.locks;
    const freeAt = lock === null ? START_MS : lock.end === 'never' ? Infinity : START_MS + lock.heldMs;
    if (first !== undefined && first.startedAt < freeAt)
      yield `the job lock is acquired ${freeAt - first.startedAt} ms before its holder has ended`;
    // One more attempt may follow if the response to the first one was lost.
    const waits = world.log.filter(
      ({ at, what }) =>
        what === 'waitForJobLock started' && at + START_MS > (first?.startedAt ?? Infinity) + END_DELAY_MS,
    );
    if (waits.length > 2 && !isReset) yield 'the follow-up waits for the job lock that it holds';
    if (isHindered || plan.whenActive !== 'wait' || run.closedAt < latestDeadlineAt || posts.length > 0)
      return;
    if (first === undefined && freeAt + END_DELAY_MS < latestDeadlineAt)
      yield 'the job lock was free, and the follow-up has not acquired it';
  },
  /** The lock is released in the last task; nothing but what hinders it leaves a lock open. */
  function* releasesItsLock({ world, isHindered, run }) {
    if (isHindered) return;
    for (const { runId, isOpen, closedAt } of world.locks)
      if (isOpen) yield `the job lock ${runId} is still held after the end`;
      else if (closedAt < run.closedAt - REPORT_DELAY_MS)
        yield `the job lock ${runId} is released before the end`;
  },
  function* cancellationWasRequested({ world, end }) {
    if (end.kind === 'cancelled' && world.performedOfKind('cancel').length === 0)
      yield 'nobody has cancelled it';
  },
  /** A run ends in the task that is told of it, or waits for its POST. Its end is written down last. */
  function* cancellationEndsRun({ world }) {
    for (const { events, start, status } of world.runs) {
      const types = events.map(({ type }) => type);
      const asked = types.indexOf('WorkflowExecutionCancelRequested');
      if (asked < 0 || start.workflowType !== FOLLOW_UP_WORKFLOW) continue;
      const until = types.slice(asked, types.lastIndexOf('UpsertWorkflowSearchAttributes'));
      const isLate = until.filter((type) => type === 'WorkflowTaskCompleted').length > 1;
      if ((isLate ? /Completed|Failed|AsNew/ : /AsNew/).test(status)) yield `${status}, and it was cancelled`;
    }
  },
  /** What a list shows says how it ended. */
  function* searchAttributesMatchOutcome({ run, end: { kind, type, result, receipt } }) {
    const { FollowUpPhase, FollowUpOutcome } = run.searchAttributes;
    const phase = String(fromPayload(FollowUpPhase));
    const outcome = JSON.stringify(fromPayload(FollowUpOutcome));
    if (kind !== 'terminated' && kind !== 'open' && phase !== FINAL_PHASES[kind])
      yield `it ended by ${kind}, and its phase is ${phase}`;
    const how = result?.status ?? (kind === 'failure' ? type : 'cancelled');
    const ended = JSON.stringify(receipt && [how, receipt.delivery.verdict]);
    if (outcome !== ended) yield `its outcome is ${ended}, and a list shows ${outcome}`;
  },
];

/** What it does by its own rules. */
export const UNDISTURBED_RULES: readonly Rule[] = [
  /** With `reject`, a look that shows an active job is the last request, unless it proves that a message has arrived. */
  function* rejectsAtOnce({ world, plan, shown, posts }) {
    const held = shown.find((get) => !isPoll(get) && !isIdle(get.shown));
    if (plan.whenActive !== 'reject' || posts.length > 0 || held === undefined) return;
    const next = world.service.requests.find(({ requestedAt }) => requestedAt > held.receivedAt);
    if (next !== undefined) yield `request ${next.number} after a look at an active job, with reject`;
  },
  /** A 429 with a time holds the next request of its kind for so long, within bounds. */
  function* honoursRetryAfter({ plan, run, posts, gets, deadlineAt }) {
    for (const requests of [posts, gets])
      for (const [index, { answer, receivedAt, retryAfter }] of requests.entries()) {
        if (answer !== 'http_429' || receivedAt === null || !/^-?\d+$/.test(retryAfter ?? '')) continue;
        const next = requests[index + 1];
        const waitMs = Math.max(1_000, Math.min(3_600_000, Number(retryAfter) * 1_000));
        const waited = (next?.requestedAt ?? run.closedAt) - receivedAt;
        if (next !== undefined && waited < waitMs && next.requestedAt < deadlineAt)
          yield `asked ${waited} ms after a 429 that wanted ${waitMs} ms`;
        // Jitter makes it up to half as long again.
        if (requests === gets && waited > 1.5 * waitMs + plan.polling.maximumMs + END_DELAY_MS)
          yield `${waited} ms passed after a 429 that wanted ${waitMs} ms`;
      }
  },
  /** A POST that nobody knows of is looked for at once: the wait that its answer wants is not one for reads. */
  function* readsSoonAfterUnknownPost({ plan, run, posts, gets, shown }) {
    if (gets.some(({ answer, retryAfter }) => answer === 'http_429' || retryAfter !== null)) return;
    for (const { answer, receivedAt, retryAfter, attempt } of posts) {
      if (answer !== 'http_503' || retryAfter === null || receivedAt === null) continue;
      if (!isIdle(shown.findLast((get) => get.attempt === attempt)?.shown)) continue;
      const next = gets.find(({ requestedAt }) => requestedAt >= receivedAt);
      const waited = (next?.requestedAt ?? run.closedAt) - receivedAt;
      if (waited > plan.maxStalenessMs + 2 * plan.polling.initialMs + END_DELAY_MS)
        yield `${waited} ms passed after a 503 on the POST, and nobody looked for the message`;
    }
  },
  /** Once a read has shown the turn, nothing is read until an answer is fresh; but for whoever is to decide. */
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
    if (idle !== undefined) yield `read ${idle.number} decides nothing`;
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
        yield `poll ${number} comes ${requestedAt - before.receivedAt} ms after the one before`;
    }
  },
  /** Five 404s in a row that span `maxStaleness` are its end, unless its link is all that is waited for. */
  function* missingJobEndsFollowUp({ world, plan, hasEntered }) {
    if (hasEntered('waiting-for-link')) return;
    let lost: Request[] = [];
    for (const request of world.service.requests) {
      const spanMs = (lost.at(-1)?.requestedAt ?? 0) - (lost[0]?.receivedAt ?? 0) - REPORT_DELAY_MS;
      if (lost.length >= 5 && spanMs >= plan.maxStalenessMs)
        yield `request ${request.number} after ${lost.length} answers that there is no such job`;
      const isLost = isPoll(request) && request.answer === 'http_404' && request.receivedAt !== null;
      lost = isLost ? [...lost, request] : [];
    }
  },
  /** Its history grows with its reads, of which a cool-down holds back some: nothing wakes it for nothing. */
  function* historyIsBounded({ world }) {
    for (const { runId, events } of world.runs) {
      const requests = world.service.requests.filter((request) => request.runId === runId).length;
      // A wait for the job lock makes no request.
      const activities = events.filter(
        (event) =>
          'activity' in event && ['getJob', 'waitForJobLock'].includes(event.activity.activityType ?? ''),
      ).length;
      if (events.length > EVENTS.atMost + EVENTS.ofRequest * Math.max(requests, activities))
        yield `${runId} has ${events.length} events, and made ${requests} requests`;
    }
  },
];
