import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { JobState } from '../../src/core/job';
import { provesDelivery } from '../../src/core/evidence';
import { PLAN } from '../harness/samples';
import { newWatch, record } from '../../src/workflows/follow-up/state';
import { nextStep } from '../../src/workflows/follow-up/watch';

/*
 * The rule against timelines of a job. Times are in milliseconds; the POST begins at 0. A read shows the job as it was up to
 * `lagMs` ago, and a message is taken up to `takeUpMs` after its POST ended; together they are at most `confirm`.
 */

const CONFIRM_MS = PLAN.confirmMs;

/** The job from a moment on. */
interface Change {
  readonly at: number;
  readonly job: JobState;
}

interface Timeline {
  readonly changes: readonly Change[];
  /** When the turn that the message began is over, and how; null where the message never arrived. */
  readonly end: Change | null;
  readonly postEndedAt: number;
  readonly lagMs: number;
}

const terminal = fc.record({
  status: fc.constantFrom('completed', 'failed'),
  prLink: fc.constantFrom(null, 'https://example.test/pull/1', 'https://example.test/pull/2'),
  archivedAt: fc.constant(null),
});
const archive = (job: JobState): JobState => ({
  ...job,
  status: 'archived',
  archivedAt: '2026-01-01T00:00:00Z',
});
const activeLike = ({ prLink }: JobState): JobState => ({ status: 'active', prLink, archivedAt: null });

/** How lag and take-up share `confirm`, and how long the POST takes. */
const delays = fc
  .record({
    lagMs: fc.integer({ min: 0, max: CONFIRM_MS }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ lagMs, share }) => ({ lagMs, takeUpMs: Math.floor((CONFIRM_MS - lagMs) * share) }));
const duration = fc.oneof(fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 200_000 }));
const post = fc.integer({ min: 0, max: 30_000 });

/** A message that arrived: after a turn of somebody else that was over long ago, was just over, or is under way. */
const delivered: fc.Arbitrary<Timeline> = fc
  .record({
    delays,
    postEndedAt: post,
    before: terminal,
    other: terminal,
    own: terminal,
    turnMs: duration,
    otherMs: duration,
    otherEndsAt: fc.integer({ min: -60_000, max: 60_000 }),
    archived: fc.boolean(),
  })
  .map(({ delays: { lagMs, takeUpMs }, postEndedAt, before, other, own, ...drawn }) => {
    const { turnMs, otherMs, otherEndsAt, archived } = drawn;
    const rest = archived && otherEndsAt < 0 ? archive(other) : other;
    // A turn that is under way at the look has been so for long enough to be shown. The message waits for its end.
    const otherBeganAt = (otherEndsAt > 0 ? -lagMs - 1 : otherEndsAt) - otherMs;
    const takenUpAt = Math.max(postEndedAt, otherEndsAt) + takeUpMs;
    const end = { at: takenUpAt + turnMs, job: own };
    const changes = [
      { at: -Infinity, job: before },
      { at: otherBeganAt, job: activeLike(before) },
      { at: otherEndsAt, job: rest },
      { at: takenUpAt, job: activeLike(rest) },
      end,
    ];
    return { changes, end, postEndedAt, lagMs };
  });

/**
 * A message that never arrived: a turn of somebody else is over before the look, and people archive the job and take it out
 * again. Where that turn ended in the other one of completed and failed, the look has shown its end (docs/guarantees.md).
 */
const lost: fc.Arbitrary<Timeline> = fc
  .record({
    delays,
    postEndedAt: post,
    before: terminal,
    link: fc.option(fc.webUrl()),
    otherMs: duration,
    otherEndsAt: fc.integer({ min: -60_000, max: 0 }),
    archivings: fc.array(fc.integer({ min: -60_000, max: 60_000 }), { maxLength: 4 }),
  })
  .map(({ delays: { lagMs }, postEndedAt, before, link, otherMs, otherEndsAt, archivings }) => {
    const rest = { ...before, prLink: link };
    const moments = archivings.filter((at) => at > otherEndsAt).sort((one, other) => one - other);
    const changes = [
      { at: -Infinity, job: before },
      { at: otherEndsAt - otherMs, job: activeLike(before) },
      { at: otherEndsAt, job: rest },
      ...moments.map((at, index) => ({ at, job: index % 2 === 0 ? archive(rest) : rest })),
    ];
    return { changes, end: null, postEndedAt, lagMs };
  });

/** What a service answers: a job as it was a while ago, or trouble. */
const answers = fc.infiniteStream(
  fc.record({
    lag: fc.double({ min: 0, max: 1, noNaN: true }),
    tookMs: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 40_000 })),
    fails: fc.nat(9).map((of) => of === 0),
  }),
);
type Answers = Iterator<{ lag: number; tookMs: number; fails: boolean }, undefined>;

function shown({ changes, lagMs }: Timeline, now: number, lag: number): JobState {
  const at = now - Math.floor(lag * lagMs);
  const job = changes.findLast((change) => change.at <= at)?.job;
  if (job === undefined) throw new Error('the timeline has no beginning');
  return job;
}

/** Follows the timeline by the steps of the watch. @returns when it was told, and the job; null if it never was */
function follow(timeline: Timeline, stream: Answers, deadlineAt: number) {
  const { postEndedAt } = timeline;
  const next = () => {
    const { value } = stream.next();
    if (value === undefined) throw new Error('the stream of answers has an end');
    return value;
  };
  const watch = newWatch(shown(timeline, 0, next().lag), 0, postEndedAt + CONFIRM_MS);
  const plan = { ...PLAN, deadlineMs: deadlineAt, polling: { ...PLAN.polling, timerPolls: 'all' } } as const;
  let now = postEndedAt;
  let askedAt = 0;
  let provedAt: number | null = null;
  for (;;) {
    const step = nextStep({ plan, deadlineAt }, watch, now, askedAt, () => 0.5);
    if (step.kind !== 'wait')
      return { told: step.kind === 'settled' ? watch.last : null, askedAt, now, provedAt };
    now = Math.min(now + step.waitMs, Math.max(now, deadlineAt));
    askedAt = now;
    const { lag, tookMs, fails } = next();
    // The service answers at any moment between the question and its receipt.
    const job = shown(timeline, now + Math.floor(tookMs / 2), lag);
    now += tookMs;
    if (!fails) record(watch, job, askedAt, now);
    if (provesDelivery(watch.observations)) provedAt ??= askedAt;
  }
}

const runs = { numRuns: 1_500 };

describe('for any timeline of a job, lag and take-up within confirm', () => {
  // Proves A8.
  it('what is told is the end of the message’s own turn, and it is told', () => {
    fc.assert(
      fc.property(delivered, answers, (timeline, stream) => {
        const { end } = timeline;
        const { told, askedAt, now } = follow(timeline, stream, 3_600_000);
        expect(told).toEqual(end?.job);
        expect(now).toBeGreaterThanOrEqual(end?.at ?? Infinity);
        expect(askedAt).toBeGreaterThanOrEqual(timeline.postEndedAt + CONFIRM_MS);
      }),
      runs,
    );
  });

  // Proves A8.
  it('nothing proves a message that never arrived', () => {
    fc.assert(
      fc.property(lost, answers, (timeline, stream) => {
        expect(follow(timeline, stream, 300_000).provedAt).toBeNull();
      }),
      runs,
    );
  });
});
