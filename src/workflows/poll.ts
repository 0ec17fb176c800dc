import type { Tally } from '../contract/activities';
import { jobState, type JobState, sameState } from '../contract/job';
import { afterAnswer, type AnswerSource } from '../polling/evidence';
import { addCounts, countAnswer } from '../polling/observed';
import { nameOf } from '../polling/tally';
import { afterReading } from '../polling/trouble';
import type { FollowUpContext, TimedAnswer } from './context';
import { pollOn } from './poll-on';
import type { Watch } from './state';
import { mayPollOn } from './watch-step';

/** One read: it is counted, and what it shows is kept as evidence. */
export async function readAndRecord(
  context: FollowUpContext,
  watch: Watch,
  summary = `poll ${watch.polls + 1}`,
): Promise<void> {
  take(watch, await context.read(summary));
}

/** How the next read is made: when, and what the Web UI shows of it. */
export interface NextRead {
  readonly waitMs: number;
  /** The summary of the timer before it. */
  readonly why: string;
  /** The summary of the read. @default poll N */
  readonly summary?: string;
  /** The read is a single one, whatever may come after it. @default false */
  readonly single?: boolean;
}

/**
 * Waits and reads once; or, while nothing changes, has one activity wait and read on until the job has moved or something
 * else needs a decision. Where an operator decides during the wait, nothing is read.
 */
export async function readNext(
  context: FollowUpContext,
  watch: Watch,
  { waitMs, why, summary = `poll ${watch.polls + 1}`, single = false }: NextRead,
): Promise<void> {
  const { state } = context;
  const { last: known } = watch;
  const firstWaitMs = context.sparing(waitMs);
  const readOnce = async () => {
    await context.pause(waitMs, why);
    if (context.decision === null) await readAndRecord(context, watch, summary);
  };
  if (single || known === null || !mayPollOn(state.plan.polling, watch) || !context.mayPollOn(firstWaitMs)) {
    await readOnce();
    return;
  }
  const hasRead = await pollOn(context, {
    summary: `${summary} and on, until ${known.status} changes`,
    known,
    since: watch.since,
    trouble: watch.trouble,
    firstWaitMs,
    count: (tally, askedAt) => {
      count(watch, known, tally, askedAt);
      state.lastAnswer = tally.lastAnswer ?? state.lastAnswer;
    },
    take: (answer) => {
      context.note(answer.answer);
      take(watch, answer);
    },
  });
  if (!hasRead) await readOnce();
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
  if (tally.jobAnswers > 0) record(watch, known, askedAt, Date.now(), 'read', tally.jobAnswers);
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
