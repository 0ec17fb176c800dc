import type { JobAnswer, PollJobInput, Tally, Trouble } from '../contract/activities';
import { sameState } from '../contract/job';
import { countAnswer } from './observed';
import { afterReading, isUnauthorized } from './trouble';

/** A poll before its first answer. */
export function startTally(trouble: Trouble): Tally {
  return { polls: 0, observed: {}, jobAnswers: 0, trouble, lastAnswer: null, nextReadAt: null };
}

/** The tally after one more answer by which nothing has changed. */
export function tallied(tally: Tally, answer: JobAnswer, heardAt: number): Tally {
  return {
    polls: tally.polls + 1,
    observed: countAnswer(tally.observed, nameOf(answer)),
    jobAnswers: tally.jobAnswers + (answer.kind === 'job' ? 1 : 0),
    trouble: afterReading(tally.trouble, answer, heardAt),
    lastAnswer: wordsOf(answer),
    nextReadAt: null,
  };
}

/**
 * Whether an answer needs a decision of the workflow: the job has moved, or the service says that it is gone or that
 * the key is refused. Everything else (429, 5xx, time-outs, a lost connection) is a delay.
 */
export function needsDecision(answer: JobAnswer, known: PollJobInput['known']): boolean {
  if (answer.kind === 'job') return !sameState(answer.job, known);
  return answer.httpStatus === 404 || isUnauthorized({ last: answer });
}

/** The name under which an answer is counted. */
export function nameOf(answer: JobAnswer): string {
  return answer.kind === 'job' ? answer.job.status : answer.label;
}

/** An answer as `lastAnswer` tells it. */
export function wordsOf(answer: JobAnswer): string {
  return answer.kind === 'job' ? answer.job.status : answer.message;
}
