import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import type { JobResponse } from '../../src/contract/activities';
import type { PostOutcome, SendOutcome, SendRecord } from '../../src/contract/send-result';
import { type AgentJob, isTerminal } from '../../src/contract/job';
import { apply, type FollowUpEvent } from '../../src/follow-up/apply';
import { decideSend } from '../../src/follow-up/evidence';
import { initialState } from '../../src/follow-up/initial-state';
import { nextStep } from '../../src/follow-up/next-step';
import { toReceipt, reportedDelivery } from '../../src/follow-up/receipt';
import {
  continuation,
  type FollowUpState,
  isContinuedFollowUp,
  isDecisionNeeded,
} from '../../src/follow-up/state';
import type { FollowUpEnd, Step } from '../../src/follow-up/step';
import { outcomeFromUnreportedSend, type UnreportedSendCause } from '../../src/follow-up/unreported-send';
import { HOLDER, httpFailure, job, ms, PLAN, REFUSED, RUN_ID } from './states';

/*
 * This file plays arbitrary sequences of events against `nextStep` and `apply`, with a model of `perform`. In the model, each step
 * causes an event that is possible for the step. Updates and cancellations arrive at any time. fast-check makes a list of numbers, and
 * every number is one choice of the sequence. 0 is the simplest choice, so that fast-check can shrink a sequence that violates a
 * property.
 */

/** Returns the choices of a sequence one after another. */
class Choices {
  private next = 0;

  constructor(private readonly numbers: readonly number[]) {}

  get areUsedUp(): boolean {
    return this.next >= this.numbers.length;
  }

  private number(): number {
    const number = this.numbers[this.next] ?? 0;
    this.next += 1;
    return number;
  }

  pick<const T extends readonly unknown[]>(...values: T): T[number] {
    return values[this.number() % values.length];
  }

  /** Returns true for one of `count` numbers. */
  oneIn(count: number): boolean {
    return this.number() % count === count - 1;
  }

  /** Returns a number from 0 to less than 1. */
  share(): number {
    return (this.number() % 1_000) / 1_000;
  }
}

/** Counts of the events, POSTs and outcomes in all sequences of a test run. */
export class Figures {
  sequences = 0;
  events = 0;
  /** The POSTs that the agent service may have processed or rejected. */
  posts = 0;
  grantedPermits = 0;
  /** The maximum number of steps between the last choice of a sequence and the end of the follow-up. */
  longestEnding = 0;
  readonly ends: Record<string, number> = {};
  readonly eventKinds: Record<string, number> = {};

  toString(): string {
    const sorted = (counts: Record<string, number>) =>
      Object.entries(counts)
        .sort(([, one], [, other]) => other - one)
        .map(([name, count]) => `${name} ${count}`)
        .join(', ');
    return [
      `${this.sequences} sequences, ${this.events} events, ${this.posts} POSTs, ${this.grantedPermits} further permits`,
      `steps from the last choice to the end: at most ${this.longestEnding}`,
      `events: ${sorted(this.eventKinds)}`,
      `ends: ${sorted(this.ends)}`,
    ].join('\n');
  }
}

/** Throws if a sequence violates a property. The error message has the plan and the events of the sequence. */
export function checkSequences(numRuns: number): Figures {
  const figures = new Figures();
  // With bias, fast-check would make half of the sequences short.
  const numbers = fc.noBias(fc.array(fc.nat({ max: 9_999 }), { minLength: 1, maxLength: 300, size: 'max' }));
  fc.assert(
    fc.property(numbers, (sequence) => {
      new Sequence(new Choices(sequence), figures).play();
    }),
    { numRuns },
  );
  return figures;
}

/** The maximum number of steps after the last choice, for sequences that end only at the deadline. */
const MAX_ENDING_STEPS = 300;

/** The maximum time from the request of a send permission to the end of its POST. */
const MAX_POST_MS = 40_000;

class Sequence {
  private state: FollowUpState;
  private now = ms(0);
  /** The ID of the run that is played. After a reset, this run is not the first run. */
  private readonly runId: string;
  private readonly events: unknown[] = [];
  private posts = 0;
  private grantedPermits = 0;
  private resends = 0;
  /** Whether the agent service may have processed a POST. */
  private mayHaveArrived = false;
  private hasBeenAccepted = false;
  /** The time by which every POST that may have been processed has ended. */
  private postEndedAt: number | null = null;
  /** The readable responses since that POST. */
  private reads: { job: AgentJob; requestedAt: number; at: number }[] = [];
  private readonly lastJob: string;
  /** Whether the choices are used up. If they are, every read returns the same idle job. */
  private isEnding = false;

  constructor(
    private readonly choose: Choices,
    private readonly figures: Figures,
  ) {
    this.lastJob = choose.pick('completed+link', 'completed', 'failed');
    const isReset = choose.oneIn(10);
    this.runId = isReset ? 'run-2' : RUN_ID;
    const plan = {
      ...PLAN,
      whenActive: choose.pick('wait', 'send', 'wait', 'send', 'reject'),
      onUnknownDelivery: choose.pick('fail', 'assume-delivered', 'resend', 'ask', 'resend', 'ask'),
      maxStalenessMs: choose.pick(ms(30), 0),
      reconcileTimeoutMs: choose.pick(ms(120), 0, ms(10)),
      prLinkTimeoutMs: choose.pick(ms(20), 0),
      deadlineMs: choose.pick(ms(3_600), ms(86_400), ms(86_400), ms(86_400), ms(86_400), ms(31)),
      polling: {
        ...PLAN.polling,
        timerPolls: choose.pick(2, 0, 'all'),
        jitter: choose.pick(0, 0.5),
        growth: choose.pick(0.1, 0),
      },
    };
    this.state = initialState(plan, { startedAt: 0, firstRunId: RUN_ID, isReset });
    freezeJson(this.state);
  }

  play(): void {
    this.figures.sequences += 1;
    try {
      const outcome = this.playToEnd();
      this.figures.posts += this.posts;
      this.figures.grantedPermits += this.grantedPermits;
      count(this.figures.ends, nameOf(outcome));
    } catch (error) {
      const events = this.events.map((event) => JSON.stringify(event)).join('\n');
      throw new Error(`${String(error)}\n${JSON.stringify(this.state.plan)}\n${events}`, { cause: error });
    }
  }

  private playToEnd(): FollowUpEnd {
    let endingSteps = 0;
    for (;;) {
      const step = this.decide();
      if (step.do === 'end') {
        this.checkEnd(step.outcome);
        return step.outcome;
      }
      this.isEnding = this.choose.areUsedUp;
      if (this.isEnding) {
        endingSteps += 1;
        this.figures.longestEnding = Math.max(this.figures.longestEnding, endingSteps);
        check(endingSteps <= MAX_ENDING_STEPS, 'every sequence ends');
      }
      this.perform(step);
    }
  }

  /** Returns the next step, and checks that the state has exactly one step, neither in the past nor after the deadline. */
  private decide(): Step {
    const random = this.choose.share();
    const { state, now } = this;
    // With a long history, the waits have a minimum.
    const minWaitMs = this.isEnding || !this.choose.oneIn(8) ? 0 : ms(60);
    const step = nextStep(state, now, () => random, minWaitMs);
    check(
      isDeepStrictEqual(
        step,
        nextStep(state, now, () => random, minWaitMs),
      ),
      'each state has one step',
    );
    if ('at' in step) {
      check(Number.isFinite(step.at) && step.at >= now, 'a step is never in the past');
      check(step.at <= Math.max(now, state.deadlineAt), 'a step is never after the deadline');
    }
    if (step.do === 'poll')
      check(
        step.at < step.decidesAt && step.decidesAt <= state.deadlineAt,
        'a poll decides after its first read, and not after the deadline',
      );
    if (step.do === 'send') {
      check(
        now < state.deadlineAt && !state.isCancelled,
        'nothing is sent after the deadline or a cancellation',
      );
      check(state.delivery.kind === 'unsent' || state.delivery.kind === 'unknown', 'a send needs a permit');
    }
    return step;
  }

  /** Models `perform`: updates can interrupt a wait, and can arrive while an activity runs. */
  private perform(step: Exclude<Step, { do: 'end' }>): void {
    const { choose } = this;
    // The activity `pollJob` waits itself.
    if ('at' in step && step.do !== 'poll' && step.at > this.now) {
      if (this.isInterrupted()) {
        this.now += Math.round(choose.share() * (step.at - this.now));
        this.applyExternalEvent();
        return;
      }
      this.now = step.at;
    }
    // No send starts at the deadline.
    if (step.do === 'send' && this.now >= this.state.deadlineAt) return;
    const startedAt = this.now;
    const isInterrupted = this.isInterrupted();
    this.elapse(step);
    if (isInterrupted) this.applyExternalEvent();
    // The workflow ignores the result of a cancelled read.
    if (step.do === 'read' && this.state.isCancelled) return;
    this.apply(this.eventOf(step, startedAt, isInterrupted));
    // Workflow tasks also take time.
    if (choose.oneIn(16)) this.now += choose.pick(1, 1_000, ms(30), ms(4_000));
  }

  private isInterrupted(): boolean {
    return !this.isEnding && this.choose.oneIn(8);
  }

  /** Advances the clock by the duration of an activity, which may be 0 or long enough to pass the deadline. */
  private elapse(step: Step): void {
    if (this.isEnding) this.now = step.do === 'poll' ? step.decidesAt : this.now + 1;
    else if (this.choose.oneIn(16)) this.now += this.choose.pick(ms(30), ms(30), ms(600), ms(100_000));
    else this.now += this.choose.pick(1, 0, 300, 5_000);
  }

  private applyExternalEvent(): void {
    const { choose, now: at, state } = this;
    const decision = { kind: 'delivery decided', runId: choose.pick(this.runId, RUN_ID) } as const;
    const events: FollowUpEvent[] = [
      { kind: 'read requested', at },
      { kind: 'deadline extended', deadlineAt: at + choose.pick(ms(100), ms(10_000)) },
      ...(isDecisionNeeded(state)
        ? [
            { ...decision, decision: 'not-delivered' } as const,
            { ...decision, decision: 'delivered' } as const,
            { ...decision, decision: 'not-delivered' } as const,
          ]
        : []),
      ...(choose.oneIn(3) ? [{ kind: 'cancelled' } as const] : []),
    ];
    this.apply(choose.pick(...events));
  }

  private eventOf(
    step: Exclude<Step, { do: 'end' }>,
    startedAt: number,
    isInterrupted: boolean,
  ): FollowUpEvent {
    const { choose, now: at } = this;
    switch (step.do) {
      case 'wait for job lock':
        return { kind: 'lock wait ended', lockRunId: choose.pick('lock-1', null) };
      case 'send':
        return this.sendEvent(step, startedAt);
      case 'read':
        return { kind: 'read ended', response: this.response(), requestedAt: startedAt, at };
      case 'poll': {
        const last = {
          response: this.response(),
          requestedAt: startedAt + Math.round(choose.share() * (at - startedAt)),
        };
        return {
          kind: 'poll ended',
          unchangedReads: choose.pick(3, 0, 50),
          status: step.lastState.status,
          last: this.isEnding || choose.oneIn(4) ? null : last,
          isInterrupted,
          at,
        };
      }
      case 'conclude reconciling':
        return { kind: 'reconciling ended' };
    }
  }

  private response(): JobResponse {
    if (this.isEnding || !this.choose.oneIn(5)) return { kind: 'job', job: this.job() };
    const { choose } = this;
    const failure = choose.pick(
      httpFailure(503),
      httpFailure(404),
      httpFailure(404),
      httpFailure(401),
      httpFailure(403),
      httpFailure(403, { isRateLimit: true }),
      httpFailure(429, { isRateLimit: true }),
      REFUSED,
    );
    const retryAfterMs = choose.pick(undefined, undefined, undefined, undefined, 0, ms(60), ms(1_000_000));
    return { kind: 'failure', ...failure, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }

  /** Returns a new object every time, so that the read that returned a job can be identified. */
  private job(): AgentJob {
    const { choose } = this;
    if (this.isEnding) return job(this.lastJob);
    if (!choose.oneIn(3)) return job(choose.pick('active', 'completed'));
    return job(
      choose.pick('active', 'completed', 'completed+link', 'failed', 'archived', 'archived+time', 'paused'),
    );
  }

  /** Models the send activity: its job lock, its baseline read, its POST, and sends that end without a report. */
  private sendEvent(step: Step & { do: 'send' }, startedAt: number): FollowUpEvent {
    const { choose, now: at, state } = this;
    const { whenActive } = state.plan;
    const lockRunId = whenActive === 'wait' ? choose.pick('lock-1', null) : null;
    const ended = (outcome: SendOutcome) =>
      ({ kind: 'send ended', outcome, lockRunId, startedAt, at, maxPostMs: MAX_POST_MS }) as const;

    if (this.isEnding && step.permit.runId === this.runId)
      return ended(this.post(this.job(), { verdict: 'accepted', job: job('active') }));
    if (!this.isEnding && choose.oneIn(5)) return { ...ended(this.unreportedEnd(step)), lockRunId: null };
    if (!this.isEnding && whenActive === 'wait' && choose.oneIn(6))
      return ended({ kind: 'lock-held', holder: HOLDER });

    const read = this.response();
    if (step.permit.runId !== this.runId) {
      const baseline = read.kind === 'job' ? read.job : null;
      const end: SendOutcome = { kind: 'reset', baseline, label: 'reset', message: 'reset' };
      this.recordPost(at + MAX_POST_MS);
      return ended(end);
    }
    if (read.kind === 'failure') return ended({ ...read, kind: 'not-read' });
    const { job: baseline } = read;
    if (decideSend(baseline, whenActive, step.earlierBaseline) !== 'send') {
      this.reads.push({ job: baseline, requestedAt: startedAt, at });
      return ended({ kind: 'job-not-ready', job: baseline });
    }
    if (choose.oneIn(12)) return ended({ kind: 'postponed', label: 'deadline', message: 'not now' });
    return ended(this.post(baseline, this.postOutcome()));
  }

  private postOutcome(): PostOutcome {
    const { choose } = this;
    const isPermanent = choose.oneIn(8);
    return choose.pick<PostOutcome[]>(
      { verdict: 'accepted', job: this.job() },
      { verdict: 'unknown', ...REFUSED, label: 'ECONNRESET' },
      { verdict: 'unknown', ...httpFailure(503) },
      { verdict: 'unknown', ...REFUSED, label: 'timeout' },
      { verdict: 'rejected', ...httpFailure(422) },
      { verdict: 'not-sent', reachedService: true, ...httpFailure(429) },
      { verdict: 'not-sent', reachedService: true, ...httpFailure(401) },
      { verdict: 'not-sent', reachedService: false, ...REFUSED, ...(isPermanent && { isPermanent }) },
    );
  }

  /** Records a POST, and returns the outcome of its send. */
  private post(baseline: AgentJob, outcome: PostOutcome): SendOutcome {
    const { verdict } = outcome;
    if (verdict !== 'not-sent') this.posts += 1;
    if (verdict === 'accepted' || verdict === 'unknown') this.recordPost(this.now);
    const sentAt = this.now + this.choose.pick(0, -200, -ms(10_000), ms(10_000));
    return { kind: 'posted', baseline, sentAt, outcome };
  }

  /** Records that the agent service may have processed a POST. */
  private recordPost(endedAt: number): void {
    this.mayHaveArrived = true;
    this.postEndedAt = Math.max(endedAt, this.postEndedAt ?? 0);
    this.reads = [];
  }

  /**
   * Returns the outcome of a send without a report. The Temporal server has the record of every send that may have made its POST,
   * unless the server does not respond.
   */
  private unreportedEnd(step: Step & { do: 'send' }): SendOutcome {
    const { choose, now: at } = this;
    const hasPosted = step.permit.runId === this.runId && choose.pick(true, false);
    const checkpoint: SendRecord = { kind: 'checkpoint', baseline: this.job(), sentAt: at };
    const unknown: SendRecord = { kind: 'unknown' };
    const nothing: SendRecord = { kind: 'nothing' };
    const atEnd = hasPosted ? choose.pick(checkpoint, unknown) : choose.pick(nothing, unknown, checkpoint);
    // An activity that is still pending, or that another client completed, can make its POST after the record was read.
    const earlier = choose.pick(checkpoint, nothing, unknown);
    const cause = choose.pick<UnreportedSendCause[]>(
      'timed out',
      'cancelled',
      'pending',
      'ended without proof',
      ...(hasPosted ? [] : ['failed before permission' as const]),
    );
    const isRecordFinal = cause === 'timed out' || cause === 'cancelled';
    const outcome = outcomeFromUnreportedSend(cause, isRecordFinal ? atEnd : earlier, at);
    if (hasPosted) this.posts += 1;
    if (hasPosted || outcome.kind === 'posted') this.recordPost(at + MAX_POST_MS);
    return outcome;
  }

  private apply(event: FollowUpEvent): void {
    this.figures.events += 1;
    count(this.figures.eventKinds, event.kind === 'send ended' ? `send ${event.outcome.kind}` : event.kind);
    this.events.push({ at: this.now, ...event });
    const before = this.state;
    // A frozen state can't be mutated.
    const after = apply(before, event);
    freezeJson(after);
    this.state = after;
    this.recordRead(event);
    this.countPermit(before, after);
    this.checkState(after);
  }

  private recordRead(event: FollowUpEvent): void {
    if (event.kind === 'read ended' && event.response.kind === 'job')
      this.reads.push({ job: event.response.job, requestedAt: event.requestedAt, at: event.at });
    if (event.kind === 'poll ended' && event.last?.response.kind === 'job')
      this.reads.push({ job: event.last.response.job, requestedAt: event.last.requestedAt, at: event.at });
  }

  private countPermit({ delivery: before }: FollowUpState, { delivery: after }: FollowUpState): void {
    if (after.kind !== 'unknown' || after.permit === null) return;
    if (before.kind === 'unknown' && before.permit === after.permit) return;
    this.grantedPermits += 1;
    if (after.permit.kind === 'resend') this.resends += 1;
  }

  private checkState(state: FollowUpState): void {
    check(this.posts <= 1 + this.grantedPermits, 'every POST has a permit');
    check(this.resends <= 1, 'the resend is permitted only once');
    const { verdict } = reportedDelivery(state);
    if (this.mayHaveArrived)
      check(
        verdict === 'accepted' || verdict === 'unknown',
        'a POST that may have arrived is reported as accepted or unknown',
      );
    if (this.hasBeenAccepted) check(verdict === 'accepted', 'an accepted message stays accepted');
    this.hasBeenAccepted = verdict === 'accepted';
    if (this.figures.events % 16 === 0) this.checkJson(state);
  }

  /** Checks that the state survives JSON, because the state is the input of the next run. */
  private checkJson(state: FollowUpState): void {
    const copy = jsonCopy(state);
    const [step, sameStep] = [state, copy].map((each) => nextStep(each, this.now, () => 0.5));
    check(isDeepStrictEqual(jsonCopy(step), jsonCopy(sameStep)), 'a state survives JSON');
    const next = continuation(state);
    if (next === null) return;
    const input: unknown = jsonCopy(next);
    check(isContinuedFollowUp(input), 'the next run accepts the state');
    const { continued } = input as typeof next;
    check(
      isDeepStrictEqual(jsonCopy(nextStep(continued, this.now, () => 0.5)), jsonCopy(step)),
      'the next run makes the same step',
    );
    check(
      isDeepStrictEqual(toReceipt(continued, null), toReceipt(copy, null)),
      'the next run keeps the receipt',
    );
  }

  /** Checks that there is exactly one outcome, which depends neither on random numbers nor on the time. */
  private checkEnd(outcome: FollowUpEnd): void {
    for (const laterMs of [0, 1, ms(100_000)]) {
      const later = nextStep(this.state, this.now + laterMs, () => 0.999, ms(60));
      check(later.do === 'end' && isDeepStrictEqual(later.outcome, outcome), 'there is one outcome');
    }
    this.checkJson(this.state);
    if (outcome.kind === 'result') this.checkResult(outcome);
  }

  /** Checks that a fresh read returned the result. If nothing shows that the status is new, two reads must have returned it. */
  private checkResult({ job, evidence }: FollowUpEnd & { kind: 'result' }): void {
    const { maxStalenessMs } = this.state.plan;
    const read = this.reads.find((each) => each.job === job);
    check(this.mayHaveArrived && this.postEndedAt !== null, 'a result needs a POST');
    check(read !== undefined && isTerminal(job.status), 'a result is a job that a read returned');
    const freshFrom = (this.postEndedAt ?? Infinity) + maxStalenessMs;
    check((read?.requestedAt ?? 0) >= freshFrom, 'a result is fresh');
    if (evidence === 'seen-active' || evidence === 'status-changed') return;
    const requestedAt = read?.requestedAt ?? 0;
    const isConfirmed = this.reads.some(
      (each) =>
        each.job.status === job.status &&
        each.requestedAt >= freshFrom &&
        each.at <= requestedAt - maxStalenessMs &&
        each.at < requestedAt,
    );
    check(isConfirmed, 'a status has stayed the same if nothing shows that the status is new');
  }
}

function check(isTrue: boolean, property: string): void {
  if (!isTrue) throw new Error(`violated: ${property}`);
}

function nameOf(outcome: FollowUpEnd): string {
  if (outcome.kind === 'result') return `result (${outcome.evidence})`;
  return outcome.kind === 'failure' ? outcome.type : 'cancelled';
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

function jsonCopy<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** Freezes a value, and checks that the value is JSON. */
function freezeJson(value: unknown): void {
  if (typeof value === 'number') check(Number.isFinite(value), 'every number is finite');
  else if (typeof value === 'object' && value !== null) {
    if (Object.isFrozen(value)) return;
    check(
      [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(value) as object),
      'the state is JSON',
    );
    Object.freeze(value);
    for (const each of Object.values(value)) freezeJson(each);
  } else
    check(['string', 'boolean', 'undefined'].includes(typeof value) || value === null, 'the state is JSON');
}
