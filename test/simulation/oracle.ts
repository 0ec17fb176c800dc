import { checkRequest } from '../../src/core/check-request';
import { type AgentJob, isTerminal } from '../../src/core/job';
import {
  MEMO_RECEIPT,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../../src/core/names';
import type { FollowUpPlan } from '../../src/core/request';
import {
  type FailureDetails,
  type FollowUpProgress,
  type FollowUpResult,
  outcomeText,
  type Receipt,
} from '../../src/core/result';
import { parseDuration } from '../../src/core/units';
import { JOB, PROJECT, PROMPT, type Request } from './agent-service';
import { BEGIN } from './clock';
import { fromPayload, type HistoryEvent } from './temporal/history';
import type { Run } from './temporal/run';
import type { Facts } from './world';

/** How the latest run of a follow-up has ended. */
interface End {
  readonly kind: 'result' | 'failure' | 'cancelled' | 'terminated' | 'open';
  /** Of a failure. */
  readonly type: string;
  readonly result: FollowUpResult | undefined;
  readonly receipt: Receipt | undefined;
}

/** Everything that the rules ask about. */
class Case {
  readonly plan: FollowUpPlan;
  readonly run: Run;
  readonly end: End;
  readonly posts: readonly Request[];
  readonly gets: readonly Request[];
  readonly isReset: boolean;

  constructor(readonly facts: Facts) {
    const named = { projectId: PROJECT, jobId: JOB, prompt: PROMPT, requestId: 'request-1' };
    const checked = checkRequest({ ...named, ...facts.plan.request });
    if (!checked.ok)
      throw new Error(
        `the plan of seed ${facts.plan.seed} is not valid: ${JSON.stringify(checked.problems)}`,
      );
    this.plan = checked.plan;
    const run = facts.runs.at(-1);
    if (run === undefined) throw new Error('nothing was started');
    this.run = run;
    this.end = endOf(this.run);
    const { requests } = facts.service;
    this.posts = requests.filter(({ operation }) => operation === 'post');
    this.gets = requests.filter(({ operation }) => operation === 'get');
    this.isReset = facts.people.resets.length > 0;
  }

  /** POSTs that began and were not answered with 429, which says that nothing was processed. */
  get perhapsProcessed(): readonly Request[] {
    return this.posts.filter(({ begunAt, answer }) => begunAt !== null && answer !== 'http 429');
  }

  /** Reads with an answer about the job that somebody has heard. */
  get shown(): readonly (Request & { readonly shown: AgentJob; readonly heardAt: number })[] {
    return this.gets.filter(
      (get): get is Request & { shown: AgentJob; heardAt: number } =>
        get.shown !== null && get.heardAt !== null,
    );
  }

  /** When the latest POST that may have arrived had ended, at the earliest. */
  postEndedAt(receipt: Receipt): number {
    const ends = this.perhapsProcessed.map(({ answeredAt, reachedAt, begunAt, heardAt }) =>
      Math.min(answeredAt ?? reachedAt ?? begunAt ?? 0, heardAt ?? Infinity),
    );
    return ends.length > 0 ? Math.max(...ends) : Date.parse(receipt.sentAt ?? '') || 0;
  }

  /** The deadline as it was at the end, at the earliest: extensions only move it. */
  get deadlineAt(): number {
    const first = this.facts.runs[0]?.events.find(({ type }) => type === 'WorkflowTaskStarted');
    return (first?.at ?? 0) + this.plan.deadlineMs;
  }

  /** The deadline as it was at the end, at the latest. */
  get latestDeadlineAt(): number {
    const moved = this.facts.people.updates.flatMap(({ name, args, end, endedAt }) => {
      const duration = parseDuration(args[0]);
      const isMoved = name === UPDATE_EXTEND_DEADLINE && end?.kind === 'answered' && 'ms' in duration;
      return isMoved ? [(endedAt ?? 0) + duration.ms] : [];
    });
    return Math.max(this.deadlineAt, ...moved);
  }

  /** Machines have failed, or somebody has changed what Temporal does: it may be late. */
  get isHindered(): boolean {
    return this.facts.plan.deeds.some(({ act }) => !UNDISTURBING.has(act.kind) && !ASKING.has(act.kind));
  }

  /** Whether one of these was done. */
  has(...kinds: readonly string[]): boolean {
    return this.facts.plan.deeds.some(({ act }) => kinds.includes(act.kind));
  }

  /** Machines and people have left it alone: what it does, it does by its own rules. */
  get isUndisturbed(): boolean {
    return this.facts.plan.deeds.every(({ act }) => UNDISTURBING.has(act.kind));
  }
}

const UNDISTURBING: ReadonlySet<string> = new Set(['turn of others', 'change job', 'start again']);
const ASKING: ReadonlySet<string> = new Set(['poll now', 'extend', 'decide', 'cancel']);

type Rule = (found: Case) => Iterable<string>;
type RuleOfReceipt = (found: Case, receipt: Receipt) => Iterable<string>;

/** What is wrong with a world, by everything that is known of it; empty when all is true. */
export function lies(facts: Facts): string[] {
  const found = new Case(facts);
  const all = [...facts.broken, ...RULES.flatMap((rule) => [...rule(found)])];
  const { kind, receipt } = found.end;
  if (receipt) all.push(...RULES_OF_RECEIPTS.flatMap((rule) => [...rule(found, receipt)]));
  else if (kind !== 'terminated' && kind !== 'open') all.push('it ended without a receipt');
  return all;
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

const isDecision = (decision: string) => (update: Facts['people']['updates'][number]) =>
  update.name === UPDATE_RESOLVE_DELIVERY && update.args[0] === decision && update.end?.kind !== 'refused';

const RULES: readonly Rule[] = [
  /** At most one POST, unless `resend` was asked for or an operator has decided so for this very run. */
  function* atMostOnce({ facts, plan, perhapsProcessed }) {
    const decisions = facts.people.updates.filter(isDecision('not-delivered'));
    for (const run of facts.runs) {
      const { runId, firstRunId } = run.start;
      const posts = perhapsProcessed.filter((post) => post.runId === runId);
      // A decision names a run; without a name, it is for the first one.
      const decided = decisions.filter(({ args }) => (args[1] ?? firstRunId) === runId).length;
      const isFirst = runId === firstRunId;
      const allowed = decided + (isFirst ? 1 : 0) + (isFirst && plan.onUnknownDelivery === 'resend' ? 1 : 0);
      if (posts.length > allowed)
        yield `${posts.length} POSTs of ${runId} may have been processed, and ${allowed} were allowed`;
    }
  },
  /** Each POST is made right after a look of the same activity at the job, and to a job that may get a message. */
  function* lookedBefore({ posts, shown, plan }) {
    for (const post of posts) {
      const look = shown.findLast(
        ({ attempt, heardAt }) => attempt === post.attempt && heardAt <= post.askedAt,
      );
      if (look === undefined) yield `POST ${post.number} without a look of its own before`;
      else if (plan.whenActive !== 'send' && !isTerminal(look.shown.status))
        yield `POST ${post.number} to a job that was ${look.shown.status}, and whenActive is ${plan.whenActive}`;
    }
  },
  /** With `reject`, a look that shows an active job is the last request, unless it proves that a message has arrived. */
  function* rejectsAtOnce({ facts, plan, shown, posts, isUndisturbed }) {
    if (plan.whenActive !== 'reject' || posts.length > 0) return;
    const held = shown.find((get) => get.by === 'sendMessage' && !isTerminal(get.shown.status));
    if (held === undefined || !isUndisturbed) return;
    const next = facts.service.requests.find(({ askedAt }) => askedAt > held.heardAt);
    if (next !== undefined) yield `request ${next.number} after a look at an active job, with reject`;
  },
  /** No permission lasts longer than ten seconds. */
  function* permissionIsYoung(found) {
    const { facts, posts } = found;
    // Both clocks lie where a machine was suspended and its wall clock was set back meanwhile.
    if (found.has('freeze') && found.has('wrong clock')) return;
    for (const { number, askedAt, begunAt, worker } of posts) {
      const recorded = facts.log.findLast(
        ({ at, who, what }) => what === 'permission recorded' && who === worker && at + BEGIN <= askedAt,
      );
      if (recorded === undefined) yield `POST ${number} of ${worker} without a permission`;
      else if (begunAt !== null && begunAt - (recorded.at + BEGIN) > PERMISSION_MS)
        yield `POST ${number} begins ${begunAt - recorded.at - BEGIN} ms after its permission`;
    }
  },
  /** Whoever has asked for a read gets one that was asked for later. */
  function* polledNow(found) {
    const { facts, gets } = found;
    // Or is told that no worker answers.
    if (found.has('hold queue')) return;
    for (const { name, askedAt, endedAt, end } of facts.people.updates) {
      if (name !== UPDATE_POLL_NOW || end?.kind !== 'answered' || endedAt === null) continue;
      // A run that goes on as a new one is not over: it waits for its handlers.
      const isOver = facts.runs.some(
        ({ closedAt, status }) =>
          status !== 'WorkflowExecutionContinuedAsNew' && closedAt >= askedAt && closedAt <= endedAt + 60_000,
      );
      const isRead = gets.some((get) => get.askedAt >= askedAt && get.askedAt <= endedAt);
      if (!isRead && !isOver) yield `pollNow was answered, and nothing was read`;
    }
  },
  /** Each accepted update gets an answer. */
  function* acceptedUpdatesAreAnswered({ facts }) {
    for (const run of facts.runs) {
      if (run.status === 'WorkflowExecutionTerminated') continue;
      const done = new Set(
        run.events.flatMap((event) =>
          event.type === 'WorkflowExecutionUpdateCompleted' ? [event.updateId] : [],
        ),
      );
      for (const event of run.events)
        if (event.type === 'WorkflowExecutionUpdateAccepted' && !done.has(event.updateId))
          yield `the update ${event.name} was accepted, and never answered`;
    }
  },
  /** None is lost in a task that the server refuses. */
  function* noUpdateIsLost({ facts, isHindered }) {
    for (const { name, end } of isHindered ? [] : facts.people.updates)
      if (end?.kind === 'aborted' && end.reason === 'the workflow task failed') yield `${name} was lost`;
  },
  /** An unknown delivery is decided once, and while somebody is asked. */
  function* oneDecisionAtATime({ facts, isReset }) {
    if (isReset) return;
    const answered = facts.people.updates.filter(
      ({ name, end }) => name === UPDATE_RESOLVE_DELIVERY && end?.kind === 'answered',
    );
    const phases = facts.log.filter(({ what }) => what.startsWith('phase '));
    const asked = phases.flatMap(({ at, what }, index) =>
      what === 'phase needs-decision' ? [{ from: at, to: phases[index + 1]?.at ?? Infinity }] : [],
    );
    if (answered.length > asked.length)
      yield `${answered.length} decisions were taken, and ${asked.length} were asked for`;
    for (const { askedAt, endedAt } of answered)
      if (!asked.some(({ from, to }) => from + BEGIN <= (endedAt ?? 0) && to + BEGIN >= askedAt))
        yield 'a decision was taken before or after somebody was asked';
  },
  /** Nothing lasts much longer than its deadline. */
  function* endsInTime({ run, latestDeadlineAt, isHindered }) {
    if (!isHindered && run.closedAt > latestDeadlineAt + END_MS)
      yield `it ended ${run.closedAt - latestDeadlineAt} ms after its deadline`;
  },
  /** A 429 with a time holds the next request of its kind for so long, within bounds. */
  function* honoursRetryAfter({ plan, run, posts, gets, isUndisturbed, deadlineAt }) {
    if (!isUndisturbed) return;
    for (const requests of [posts, gets])
      for (const [index, { answer, heardAt, retryAfter }] of requests.entries()) {
        const next = requests[index + 1];
        const seconds = Number(retryAfter);
        if (answer !== 'http 429' || heardAt === null || !/^-?\d+$/.test(retryAfter ?? '')) continue;
        const waitMs = Math.max(1_000, Math.min(3_600_000, seconds * 1_000));
        if (next !== undefined && next.askedAt < heardAt + waitMs && next.askedAt < deadlineAt)
          yield `asked ${next.askedAt - heardAt} ms after a 429 that wanted ${waitMs} ms`;
        // Jitter makes it up to half as long again.
        const waited = (next?.askedAt ?? run.closedAt) - heardAt;
        if (requests === gets && waited > 1.5 * waitMs + plan.polling.maximumMs + END_MS)
          yield `${waited} ms passed after a 429 that wanted ${waitMs} ms`;
      }
  },
  /** A POST that nobody knows of is looked for at once: the wait that its answer wants is not one for reads. */
  function* looksAtOnce({ plan, run, posts, gets, shown, isUndisturbed }) {
    if (!isUndisturbed || gets.some(({ answer, retryAfter }) => answer === 'http 429' || retryAfter !== null))
      return;
    for (const { answer, heardAt, retryAfter, attempt } of posts) {
      const look = shown.findLast((get) => get.attempt === attempt);
      if (answer !== 'http 503' || retryAfter === null || heardAt === null) continue;
      if (look === undefined || !isTerminal(look.shown.status)) continue;
      const next = gets.find(({ askedAt }) => askedAt >= heardAt);
      const waited = (next?.askedAt ?? run.closedAt) - heardAt;
      if (waited > plan.confirmMs + 2 * plan.polling.initialMs + END_MS)
        yield `${waited} ms passed after a 503 on the POST, and nobody looked for the message`;
    }
  },
  /** Only the service refuses a key: a gateway's page says nothing of it. */
  function* isUnauthorizedForAReason({ facts, gets }) {
    const isShown = facts.log.some(({ what }) => what === 'phase unauthorized');
    if (isShown && !gets.some(({ answer }) => answer === 'http 401' || answer === 'http 403'))
      yield 'unauthorized, and the service has not refused the key';
  },
  /** A bug fails tasks again and again; the server itself takes one back now and then. */
  function* tasksSucceed({ facts }) {
    for (const { runId, failedTasks } of facts.runs)
      if (failedTasks.length > MOST_FAILED_TASKS)
        yield `${failedTasks.length} tasks of ${runId} failed: ${String(failedTasks[0])}`;
  },
  /** Once a read has shown the turn, nothing is read until an answer is fresh; but for whoever is to decide. */
  function* readsOnlyToDecide({ facts, posts, gets, shown, plan, isUndisturbed, deadlineAt }) {
    if (facts.log.some(({ what }) => what === 'phase needs-decision')) return;
    const [post, ...more] = posts;
    if (!isUndisturbed || more.length > 0 || typeof post?.heardAt !== 'number') return;
    const { heardAt } = post;
    const polls = <T extends { by: string; askedAt: number }>(reads: readonly T[]) =>
      reads.filter(({ by, askedAt }) => by !== 'sendMessage' && askedAt > heardAt);
    const active = polls(shown).find((read) => read.shown.status === 'active');
    const idle = polls(gets).find(
      ({ askedAt }) =>
        askedAt > (active?.heardAt ?? Infinity) && askedAt < Math.min(heardAt + plan.confirmMs, deadlineAt),
    );
    if (idle !== undefined) yield `read ${idle.number} decides nothing`;
  },
  /** Undisturbed, its history grows with its requests: nothing wakes it for nothing. */
  function* staysWithinItsHistory({ facts, isUndisturbed }) {
    if (!isUndisturbed) return;
    for (const { runId, events } of facts.runs) {
      const requests = facts.service.requests.filter((request) => request.runId === runId).length;
      if (events.length > EVENTS.atMost + EVENTS.ofRequest * requests)
        yield `${runId} has ${events.length} events, and made ${requests} requests`;
    }
  },
  function* isCancelledByPeople({ facts, end }) {
    if (end.kind === 'cancelled' && !facts.people.endings.some(({ kind }) => kind === 'cancel'))
      yield 'nobody has cancelled it';
  },
  /** What a list shows says how it ended. */
  function* showsItsPhase({ run, end }) {
    const phase = fromPayload(run.searchAttributes.FollowUpPhase) as string | undefined;
    const wanted = ({ result: 'done', failure: 'failed', cancelled: 'cancelled' } as Record<string, string>)[
      end.kind
    ];
    if (wanted !== undefined && phase !== wanted)
      yield `it ended by ${end.kind}, and its phase is ${String(phase)}`;
    const outcome = fromPayload(run.searchAttributes.FollowUpOutcome) as string | undefined;
    const ended = outcomeOf(end);
    if (outcome !== ended) yield `its outcome is ${String(ended)}, and a list shows ${String(outcome)}`;
  },
];

function outcomeOf({ kind, type, result, receipt }: End): string | undefined {
  const how = result?.status ?? (kind === 'failure' ? type : 'cancelled');
  return receipt && outcomeText(how, receipt.delivery.verdict);
}

/** Of a run that makes no request, and of one request by a timer and an activity. */
const EVENTS = { atMost: 30, ofRequest: 14 };
/** Two exchanges, a report, and the queues. */
const END_MS = 120_000;
const PERMISSION_MS = 10_000;
const MOST_FAILED_TASKS = 3;

const RULES_OF_RECEIPTS: readonly RuleOfReceipt[] = [
  function* verdictIsTrue({ facts, plan, posts }, { delivery: { verdict, confirmedBy } }) {
    const processed = posts.filter(({ processedAt }) => processedAt !== null).length;
    if ((verdict === 'accepted') !== (confirmedBy !== null)) yield `${verdict} by ${String(confirmedBy)}`;
    if ((verdict === 'not-sent' || verdict === 'rejected') && processed > 0)
      yield `${verdict}, and processed`;
    if (confirmedBy === 'response' && processed === 0) yield 'accepted by response, and never processed';
    if (confirmedBy === 'operator' && !facts.people.updates.some(isDecision('delivered')))
      yield 'accepted by operator, and nobody decided';
    if (confirmedBy === 'assumed' && plan.onUnknownDelivery !== 'assume-delivered')
      yield 'assumed, and not allowed';
  },
  /** Between the POSTs that have begun and the permissions that were given, with one that a reset run presumes. */
  function* countsItsSends({ facts, isReset, posts, run, end }, { delivery: { sends } }) {
    const reached = posts.filter(({ begunAt }) => begunAt !== null).length;
    if (!isReset && reached > sends) yield `${sends} sends, and ${reached} POSTs (${end.kind})`;
    // A run made by the only reset counts what its history has, and one that the run before may have made.
    const whole = facts.runs.filter(({ start }) => start.continuedFromRunId === undefined);
    const isOneReset = facts.people.resets.length === 1 && whole.length === 2;
    const ofEach = facts.runs.map(({ runId }) =>
      posts.filter((post) => post.runId === runId && post.begunAt),
    );
    if (isOneReset && ofEach.every(({ length }) => length <= 1) && reached > sends)
      yield `${sends} sends, and ${reached} POSTs of two runs (${end.kind})`;
    const given = facts.log.filter(({ what }) => what === 'permission recorded').length;
    // Until its history has a POST, or for good once it was refused to make one.
    const ends = run.events.map(endOfSend);
    const presumes = isReset && (ends.includes('reset') || !ends.includes('posted'));
    const most = given + facts.people.byHand.length + (presumes ? 1 : 0);
    if (sends > most) yield `${sends} sends, and ${given} permissions (${end.kind})`;
  },
  /** What becomes of an unknown delivery is what the caller has chosen. */
  function* decidesAsAsked({ facts, plan, posts, end, isUndisturbed }, { delivery: { confirmedBy } }) {
    const choice = plan.onUnknownDelivery;
    if (choice !== 'ask' && facts.log.some(({ what }) => what === 'phase needs-decision'))
      yield `somebody was asked, and the choice is ${choice}`;
    if (choice !== 'ask' && confirmedBy === 'operator') yield `decided by an operator, with ${choice}`;
    if (!isUndisturbed || end.kind !== 'failure' || end.type !== 'DeliveryUnknown') return;
    const begun = posts.filter(({ begunAt, answer }) => begunAt !== null && answer !== 'http 429').length;
    const isHeld = plan.whenActive === 'reject';
    const isSecondRefused = posts.length > 1 && posts.at(-1)?.begunAt === null;
    if (choice === 'ask' || choice === 'assume-delivered') yield `DeliveryUnknown, with ${choice}`;
    if (choice === 'resend' && begun < 2 && !isHeld && !isSecondRefused)
      yield `DeliveryUnknown after ${begun} POSTs, with resend`;
  },
  /** Nobody can be in doubt of a message for which no permission was given. */
  function* doubtsForAReason({ facts, isReset, end }, { delivery: { verdict, confirmedBy } }) {
    const isDoubted = verdict === 'unknown' || confirmedBy === 'assumed' || confirmedBy === 'operator';
    if (!isDoubted || isReset || facts.people.byHand.length > 0) return;
    if (!facts.log.some(({ what }) => what === 'permission recorded'))
      yield `${verdict}, and no permission was ever given (${end.kind})`;
  },
  /** Undisturbed, it counts each read since its POST. */
  function* countsAllReads({ gets, perhapsProcessed, isUndisturbed, facts, end }, { observed, delivery }) {
    const last = perhapsProcessed.at(-1);
    if (
      !isUndisturbed ||
      last === undefined ||
      perhapsProcessed.length > 1 ||
      facts.runs.length > 1 ||
      delivery.sends > 1
    )
      return;
    const reads = gets.filter(
      ({ by, askedAt, heardAt }) =>
        by !== 'sendMessage' && askedAt >= (last.heardAt ?? Infinity) && heardAt !== null,
    ).length;
    // A read that came too late for the deadline was made, and told to nobody.
    if (observed['no worker'] !== undefined || end.kind === 'failure') return;
    const counted = Object.entries(observed).reduce(
      (sum, [label, count]) => sum + (NOT_ASKED.has(label) ? 0 : count),
      0,
    );
    if (counted > reads || counted < reads - ATTEMPTS)
      yield `${counted} reads were counted, and ${reads} were made since the POST`;
  },
  /** A query tells of an ended run what its receipt says. */
  function* progressAgrees({ facts, run, end }, { delivery, evidence, polls }) {
    const progress = facts.progress.get(run) as FollowUpProgress | undefined;
    if (progress === undefined) return;
    const told = JSON.stringify([progress.delivery, progress.evidence, progress.polls]);
    if (told !== JSON.stringify([delivery, evidence, polls])) yield `progress says ${told} (${end.kind})`;
  },
  /** Each counted answer was heard. */
  function* countsItsReads({ gets }, { polls, observed }) {
    const sum = Object.values(observed).reduce((total, count) => total + count, 0);
    if (sum !== polls) yield `${polls} polls, and ${sum} observed`;
    const heard = gets.filter(({ by, heardAt }) => by !== 'sendMessage' && heardAt !== null);
    for (const [label, count] of Object.entries(observed)) {
      const isHttp = label.startsWith('http ');
      if (!isHttp && !STATUSES.has(label)) continue;
      const times = heard.filter(({ answer, shown }) =>
        isHttp ? answer === label : shown?.status === label,
      ).length;
      if (times < count) yield `${label} was counted ${count} times, and heard ${times} times`;
    }
  },
  /** The baseline is what a look right before a POST has shown. */
  function* hasTheBaseline({ facts, posts, shown, isUndisturbed }, { baseline, delivery }) {
    if (baseline === null || facts.people.byHand.length > 0) return;
    const looks = shown.filter(({ by }) => by === 'sendMessage');
    const before = posts.map((post) =>
      looks.findLast(({ heardAt, runId }) => runId === post.runId && heardAt <= post.askedAt),
    );
    // A worker that dies after its permission leaves a baseline without a POST.
    const possible = isUndisturbed && posts.length > 0 && delivery.verdict !== 'not-sent' ? before : looks;
    const isOne = possible.some(
      (look) =>
        look?.shown.status === baseline.status &&
        look.shown.prLink === baseline.prLink &&
        look.shown.archivedAt === baseline.archivedAt,
    );
    if (!isOne)
      yield `the baseline is ${JSON.stringify(baseline)}, and the look before the POST showed something else`;
  },
  function* knowsWhenItSent(found, { sentAt, settledAt, delivery }) {
    const { posts, facts } = found;
    const [started] = facts.runs[0]?.events ?? [];
    if (sentAt !== null && (Date.parse(sentAt) < (started?.at ?? 0) || sentAt > (settledAt ?? '')))
      yield `sent at ${sentAt}, which is not in its time`;
    if (!found.isUndisturbed) return;
    const known = posts.filter(({ begunAt, heardAt }) => begunAt !== null && heardAt !== null);
    if (
      known.length === 0 ||
      known.length !== posts.length ||
      posts.length !== delivery.sends ||
      delivery.verdict === 'not-sent'
    )
      return;
    if (!known.some(({ begunAt }) => Math.abs((begunAt ?? 0) - Date.parse(sentAt ?? '')) <= 1))
      yield `sentAt is ${String(sentAt)}, and no POST began then`;
  },
  /** Failures fit what is known of the message, and have their reason. */
  function* failsForAReason(found, receipt) {
    const { end, gets, plan, run, deadlineAt } = found;
    if (end.kind !== 'failure') return;
    const { verdict } = receipt.delivery;
    const verdicts = VERDICTS[end.type];
    if (verdicts === undefined) yield `it failed by ${end.type}`;
    else if (!verdicts.includes(verdict)) yield `${end.type} with ${verdict}`;
    if (end.type === 'DeadlineExceeded' && run.closedAt < deadlineAt)
      yield `its deadline was ${deadlineAt - run.closedAt} ms away`;
    if (end.type === 'DeadlineExceeded' && verdict === 'accepted' && found.isUndisturbed)
      yield* overdueForAReason(found, receipt);
    if (end.type === 'JobNotFound') yield* lostForAReason(gets, plan, verdict, found);
    if (end.type === 'FollowUpRejected' && verdict === 'not-sent') yield* refusedForAReason(found);
    if (
      end.type === 'DeliveryUnknown' &&
      receipt.baseline !== null &&
      isTerminal(receipt.baseline.status) &&
      plan.whenActive !== 'reject'
    ) {
      const freshAt = found.postEndedAt(receipt) + plan.confirmMs;
      // A later POST that is refused, or can't be made, ends it as well.
      const last = found.posts.at(-1);
      const isRefused = last?.begunAt === null || /^http (40[013459]|41[035]|422)$/.test(last?.answer ?? '');
      if (!isRefused && !hasFreshRead(found, freshAt)) yield 'DeliveryUnknown, and nobody has looked';
    }
  },
  /** A result is told by fresh answers, has its evidence, and is the job as it was after the turn of every message. */
  function* resultIsTrue(found, receipt) {
    const { end, plan, facts, shown } = found;
    if (!end.result) return;
    const { status, prLink, followUp } = end.result;
    if (followUp.delivery.verdict !== 'accepted') yield `a result with ${followUp.delivery.verdict}`;
    if (!isTerminal(status)) yield `a result that is ${status}`;
    const freshAt = found.postEndedAt(receipt) + plan.confirmMs;
    const settledAt = Date.parse(followUp.settledAt ?? '');
    if (settledAt < freshAt) yield `told ${freshAt - settledAt} ms before an answer could be fresh`;
    const fresh = shown.filter((get) => get.askedAt >= freshAt && get.by !== 'sendMessage');
    if (fresh.length === 0) yield 'a result, and no fresh answer';
    yield* evidenceHolds(found, end.result, fresh);
    const turns = facts.service.life.turns().filter(({ prompt }) => prompt === PROMPT);
    const turnsEndedAt = Math.max(0, ...turns.map(({ endedAt }) => endedAt ?? Infinity));
    if (turnsEndedAt > settledAt) yield 'the turn of the message ended after the follow-up';
    const from = Math.max(freshAt - facts.plan.job.lagMs, turnsEndedAt);
    const jobs = jobsBetween(facts, from, settledAt);
    const isLate = facts.plan.job.linkLateMs > 0;
    if (!jobs.some((job) => job.status === status && (job.prLink === prLink || (isLate && prLink === null))))
      yield `the result is ${status} with ${String(prLink)}, and since the turn the job was ${jobs.map((job) => `${job.status} ${String(job.prLink)}`).join(', ')}`;
    if (status === 'completed' && prLink === null && settledAt < found.deadlineAt) {
      const [first] = fresh.filter(({ shown: job }) => job.status === 'completed');
      const lookedOn = fresh.some(
        ({ shown: job, askedAt }) =>
          job.status === 'completed' &&
          job.prLink === null &&
          askedAt >= (first?.heardAt ?? 0) + plan.settleMs,
      );
      if (!lookedOn && !found.has('extend')) yield 'a link that is null, and was not waited for';
    }
  },
  /** A delivery that reading has proved: by a fresh answer that shows what counts as a turn. */
  function* proofHolds(found, receipt) {
    const { delivery, baseline } = receipt;
    const { facts, shown, plan } = found;
    if (delivery.confirmedBy !== 'read') return;
    // A run made by a reset may know of the first POST alone.
    const [first] = found.perhapsProcessed;
    const endedAt = found.isReset ? (first?.begunAt ?? 0) : found.postEndedAt(receipt);
    const freshAt = endedAt + plan.confirmMs;
    const fresh = shown.filter(({ askedAt }) => askedAt >= freshAt);
    if (baseline === null || !isTerminal(baseline.status))
      yield `proved by reading, and the baseline is ${String(baseline?.status)}`;
    const proves = (status: string) =>
      status === 'active' ||
      (isTerminal(status) &&
        status !== baseline?.status &&
        status !== 'archived' &&
        baseline?.status !== 'archived');
    if (!fresh.some((get) => proves(get.shown.status)))
      yield 'proved by reading, and no fresh answer proves it';
    const isOurs = facts.service.life.turns().some(({ prompt }) => prompt === PROMPT);
    if (
      !isOurs &&
      !found.has('turn of others', 'change job') &&
      facts.plan.job.status !== 'active' &&
      !found.isReset
    )
      yield 'proved by reading, and there was no turn';
  },
];

/** How an activity of a history has ended, if that is a send: what is known of no POST is no end. */
function endOfSend(event: HistoryEvent): string | undefined {
  if (event.type !== 'ActivityTaskCompleted') return undefined;
  const result = fromPayload(event.resolution.completed?.result) as {
    readonly kind?: string;
    readonly outcome?: { readonly verdict: string };
  } | null;
  return result?.outcome?.verdict === 'not-sent' ? undefined : result?.kind;
}

/** A read whose heartbeat is late is made by a second attempt, too. */
const ATTEMPTS = 2;
/** Answers for which no request was made. */
const NOT_ASKED = new Set(['cooling down', 'closed', 'no worker', 'read failed']);
const STATUSES = new Set(['active', 'completed', 'archived', 'failed']);

const VERDICTS: Readonly<Record<string, readonly string[]>> = {
  FollowUpRejected: ['not-sent', 'rejected'],
  DeliveryUnknown: ['unknown'],
  JobNotFound: ['not-sent', 'accepted', 'unknown'],
  DeadlineExceeded: ['not-sent', 'accepted', 'unknown'],
};

/** There was a last read, and nothing that should have been told. */
function* overdueForAReason({ gets, deadlineAt, facts, plan }: Case, receipt: Receipt): Iterable<string> {
  if (!gets.some(({ askedAt, by }) => by !== 'sendMessage' && askedAt >= deadlineAt))
    yield 'overdue without a last read';
  const since = facts.service.life.settledSince();
  const waitMs =
    2 * plan.confirmMs + plan.settleMs + 2 * (plan.polling.maximumMs + plan.polling.initialMs) + END_MS;
  const told =
    facts.plan.spells.length === 0 &&
    since !== null &&
    Math.max(since, Date.parse(receipt.sentAt ?? '')) + waitMs < deadlineAt;
  if (told) yield 'overdue, and the job was at rest for long';
}

/** Whether the follow-up knows the job: a send that was not permitted does not report what its look has shown. */
function wasWatched(shown: Case['shown']): boolean {
  return shown.some(({ by }) => by !== 'sendMessage');
}

/** By the service's word; once the job was read, trouble with a look is a delay: what ends it then is a POST, or whenActive. */
function* refusedForAReason({ posts, gets, shown, plan }: Case): Iterable<string> {
  const isActive = plan.whenActive === 'reject' && shown.some((get) => !isTerminal(get.shown.status));
  if (posts.length > 0 || isActive) return;
  if (wasWatched(shown) || !gets.some(({ answer }) => /^http 40[013]$/.test(answer ?? '')))
    yield 'FollowUpRejected, and nothing has refused it';
}

function* lostForAReason(
  gets: readonly Request[],
  plan: FollowUpPlan,
  verdict: string,
  { posts, shown, isUndisturbed }: Case,
): Iterable<string> {
  const lastShownAt = Math.max(0, ...shown.map(({ heardAt }) => heardAt));
  const heard = gets.filter(({ answer, heardAt }) => answer === 'http 404' && heardAt !== null);
  const [first] = heard;
  const last = heard.at(-1);
  if (first === undefined || last === undefined) yield 'JobNotFound, and there was no 404';
  // A job that was never read is not known.
  else if (verdict === 'not-sent' && posts.length === 0 && !wasWatched(shown)) return;
  else if (heard.length < 5) yield `JobNotFound after ${heard.length} answers`;
  else if (isUndisturbed && heard.filter(({ heardAt }) => (heardAt ?? 0) > lastShownAt).length < 5)
    yield 'JobNotFound, and the job was shown between the 404s';
  else if (last.askedAt - (first.heardAt ?? 0) < plan.confirmMs)
    yield 'JobNotFound before the 404s have spanned confirm';
}

function* evidenceHolds(
  { shown, plan, posts, isUndisturbed }: Case,
  { status, prLink, archivedAt, followUp: { evidence, baseline } }: FollowUpResult,
  fresh: Case['shown'],
): Iterable<string> {
  const isAtRest = baseline !== null && isTerminal(baseline.status);
  switch (evidence) {
    case 'seen-active': {
      // Without a POST of its own, a reset run reads from its beginning.
      const since = posts.length === 0 ? 0 : Math.min(...posts.map(({ askedAt }) => askedAt));
      const isSeen = shown.some((get) => get.askedAt >= since && get.shown.status === 'active');
      if (!isAtRest || !isSeen) yield `seen-active, with the baseline ${String(baseline?.status)}`;
      return;
    }
    case 'status-changed':
      if (!isAtRest || status === baseline.status || status === 'archived')
        yield `status-changed from ${String(baseline?.status)} to ${status}`;
      return;
    case 'job-changed':
    case 'confirmed': {
      const same = fresh.filter((get) => get.shown.status === status);
      const [first] = same;
      const held = same.some(
        (get) => get.askedAt >= (first?.heardAt ?? Infinity) + plan.confirmMs && get !== first,
      );
      if (!held) yield `${evidence}, and the status did not hold for confirm`;
      // What another status interrupts begins anew; an answer that nobody was told does not interrupt.
      const other = fresh.findLast((get) => get.shown.status !== status);
      const since = same.find((get) => get.askedAt > (other?.askedAt ?? 0));
      if (isUndisturbed && !same.some((get) => get.askedAt >= (since?.heardAt ?? Infinity) + plan.confirmMs))
        yield `${evidence}, and another status came between`;
      const hasChanged =
        baseline !== null && (prLink !== baseline.prLink || archivedAt !== baseline.archivedAt);
      if ((evidence === 'job-changed') !== hasChanged)
        yield `${evidence}, with the baseline ${JSON.stringify(baseline)} and the link ${String(prLink)}`;
      return;
    }
    case null:
      yield 'a result without evidence';
  }
}

function hasFreshRead({ shown }: Case, freshAt: number): boolean {
  return shown.some(({ askedAt }) => askedAt >= freshAt);
}

/** Every job that an answer may have shown from one moment to another. */
function jobsBetween({ service }: Facts, from: number, to: number): AgentJob[] {
  const changes = service.life.changes();
  const last = changes.findLastIndex(({ at }) => at <= from);
  return changes.slice(Math.max(0, last)).flatMap(({ at, job }) => (at <= to ? [job] : []));
}
