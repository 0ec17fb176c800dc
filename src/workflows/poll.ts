import type { Tally } from '../contract/activities';
import { type JobState, jobState, sameState } from '../contract/job';
import { addCounts, countAnswer } from '../polling/observed';
import { nameOf } from '../polling/tally';
import { afterReading } from '../polling/trouble';
import { afterAnswer } from './evidence';
import { readPatiently } from './patient';
import type { Heard, Run } from './run';
import type { WatchState } from './state';

/** One read since the send: it is counted, and what it shows is kept as evidence. */
export async function poll(run: Run, watching: WatchState): Promise<void> {
  take(run, watching, await run.read(`poll ${run.state.polls + 1}`));
}

/** Reads since the send by one activity, until the job has moved or something else needs a decision. */
export async function pollPatiently(run: Run, watching: WatchState, since: number): Promise<void> {
  const { state } = run;
  const { job: known } = state;
  if (known === null) throw new TypeError('a job is waited for that was never seen');
  const { trouble } = watching;
  const summary = `poll ${state.polls + 1} and on, by retries, until ${known.status} changes`;
  await readPatiently(run, {
    summary,
    known,
    since,
    trouble,
    count: (tally, askedAt) => {
      count(run, watching, known, tally, askedAt);
    },
    take: (heard) => {
      run.hear(heard.answer);
      take(run, watching, heard);
    },
  });
}

function take({ state }: Run, watching: WatchState, { answer, askedAt, heardAt }: Heard): void {
  state.polls += 1;
  state.observed = countAnswer(state.observed, nameOf(answer));
  watching.trouble = afterReading(watching.trouble, answer, heardAt);
  if (answer.kind === 'job') witness(watching, answer.job, askedAt, heardAt);
}

/**
 * The answers of a patience by which nothing has changed. What they show of the job counts as asked for when the
 * patience began and as heard now: how long a status has held is never taken for longer than it was.
 */
function count({ state }: Run, watching: WatchState, known: JobState, tally: Tally, askedAt: number): void {
  state.polls += tally.polls;
  state.observed = addCounts(state.observed, tally.observed);
  state.lastAnswer = tally.lastAnswer ?? state.lastAnswer;
  if (tally.polls > 0) watching.trouble = tally.trouble;
  if (tally.sightings > 0) witness(watching, known, askedAt, Date.now(), tally.sightings);
}

/** Keeps an answer about the job as evidence, or `times` equal ones; the POST's own answer is one too. */
export function witness(
  watching: WatchState,
  job: JobState,
  askedAt: number,
  heardAt: number,
  times = 1,
): void {
  watching.steady = times > 1 || (watching.last !== undefined && sameState(watching.last, job));
  watching.last = jobState(job);
  watching.sightings = afterAnswer(watching.sightings, { job, askedAt, heardAt }, times);
  watching.askedAt = askedAt;
}

/** How the last answer is told in the summary of the timer that follows it. */
export function lastAnswerInWords({ state }: Run): string {
  const source = state.polls === 0 ? 'sent' : `poll ${state.polls}`;
  return `${source}: ${state.lastAnswer ?? 'no answer yet'}`;
}
