import type { Tally } from '../contract/activities';
import { jobState, type JobState, sameState } from '../contract/job';
import { afterAnswer, type AnswerSource } from '../polling/evidence';
import { addCounts, countAnswer } from '../polling/observed';
import { nameOf } from '../polling/tally';
import { afterReading } from '../polling/trouble';
import type { FollowUpContext, TimedAnswer } from './context';
import { readPatiently } from './patient';
import type { Watch } from './state';
import { mayBePatient } from './watch-step';

/** One read: it is counted, and what it shows is kept as evidence. */
export async function readAndRecord(
  context: FollowUpContext,
  watch: Watch,
  summary = `poll ${watch.polls + 1}`,
): Promise<void> {
  take(watch, await context.read(summary));
}

/**
 * The next read of a watch: a single one, or, while nothing changes, one activity that reads on by its own retries until
 * the job has moved or something else needs a decision.
 */
export async function readOn(
  context: FollowUpContext,
  watch: Watch,
  summary = `poll ${watch.polls + 1}`,
): Promise<void> {
  const { plan } = context.state;
  const { last: known } = watch;
  if (known === null || !mayBePatient(plan.polling, watch) || !context.mayBePatient()) {
    await readAndRecord(context, watch, summary);
    return;
  }
  await readPatiently(context, {
    summary: `${summary} and on, by retries, until ${known.status} changes`,
    known,
    since: watch.since,
    trouble: watch.trouble,
    count: (tally, askedAt) => {
      count(watch, known, tally, askedAt);
      context.state.lastAnswer = tally.lastAnswer ?? context.state.lastAnswer;
    },
    take: (timed) => {
      context.note(timed.answer);
      take(watch, timed);
    },
  });
}

function take(watch: Watch, { answer, askedAt, receivedAt }: TimedAnswer): void {
  watch.polls += 1;
  watch.observed = countAnswer(watch.observed, nameOf(answer));
  watch.trouble = afterReading(watch.trouble, answer, receivedAt);
  if (answer.kind === 'job') record(watch, answer.job, askedAt, receivedAt);
}

/**
 * The answers of an activity by which nothing has changed. What they show of the job counts as asked for when the
 * activity began and as received now: how long a status has held is never taken for longer than it was.
 */
function count(watch: Watch, known: JobState, tally: Tally, askedAt: number): void {
  watch.polls += tally.polls;
  watch.observed = addCounts(watch.observed, tally.observed);
  if (tally.polls > 0) watch.trouble = tally.trouble;
  if (tally.sightings > 0) record(watch, known, askedAt, Date.now(), 'read', tally.sightings);
}

/** Keeps an answer about the job as evidence, or `times` equal ones. */
export function record(
  watch: Watch,
  job: JobState,
  askedAt: number,
  receivedAt: number,
  source: AnswerSource = 'read',
  times = 1,
): void {
  watch.steady = times > 1 || (watch.last !== null && sameState(watch.last, job));
  watch.last = jobState(job);
  watch.observations = afterAnswer(watch.observations, { job, askedAt, receivedAt }, source, times);
  watch.askedAt = askedAt;
}

/** How the last answer is told in the summary of the timer that follows it. */
export function lastAnswerInWords({ state }: FollowUpContext): string {
  const polls = state.watch?.polls ?? 0;
  return `${polls === 0 ? 'sent' : `poll ${polls}`}: ${state.lastAnswer ?? 'no answer yet'}`;
}
