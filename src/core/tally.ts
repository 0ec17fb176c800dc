import type { JobAnswer, PollJobInput, Tally, Trouble } from './activities';
import { sameState } from './job';

/** A poll before its first answer. */
export function startTally(trouble: Trouble): Tally {
  return { polls: 0, observed: {}, trouble, lastAnswer: null, nextReadAt: null };
}

/** The tally after one more answer that changed nothing. */
export function tallied(tally: Tally, answer: JobAnswer, heardAt: number): Tally {
  return {
    polls: tally.polls + 1,
    observed: countAnswer(tally.observed, labelOf(answer)),
    trouble: afterReading(tally.trouble, answer, heardAt),
    lastAnswer: textOf(answer),
    nextReadAt: null,
  };
}

/**
 * Whether an answer needs a decision of the workflow: the job has changed, or the service says that it is gone or that
 * the key is refused. Everything else (429, 5xx, time-outs, a lost connection) is a delay.
 */
export function needsDecision(answer: JobAnswer, known: PollJobInput['known']): boolean {
  if (answer.kind === 'job') return !sameState(answer.job, known);
  return answer.httpStatus === 404 || isUnauthorized({ last: answer });
}

/** The name under which an answer is counted. */
export function labelOf(answer: JobAnswer): string {
  return answer.kind === 'job' ? answer.job.status : answer.label;
}

/** An answer as `lastAnswer` shows it. */
export function textOf(answer: JobAnswer): string {
  return answer.kind === 'job' ? answer.job.status : answer.message;
}

/** How many distinct answers are counted by name: a service that keeps answering new words must not fill the history. */
const MAX_KEYS = 32;

/** The counts after one more answer of that name, or `times` more; beyond 32 names they count as `other`. */
export function countAnswer(
  observed: Readonly<Record<string, number>>,
  name: string,
  times = 1,
): Record<string, number> {
  const known = Object.hasOwn(observed, name);
  const key = known || Object.keys(observed).length < MAX_KEYS ? name : 'other';
  return { ...observed, [key]: (Object.hasOwn(observed, key) ? (observed[key] ?? 0) : 0) + times };
}

/** The counts of both. */
export function addCounts(
  observed: Readonly<Record<string, number>>,
  more: Readonly<Record<string, number>>,
): Record<string, number> {
  return Object.entries(more).reduce<Record<string, number>>(
    (sum, [name, times]) => countAnswer(sum, name, times),
    { ...observed },
  );
}

export const NO_TROUBLE: Trouble = { last: null, count: 0, notFound: null };

/** How many 404s in a row are needed: a replica that lags behind answers a few. */
const MIN_NOT_FOUND = 5;

/** @param heardAt when the answer was received, in milliseconds since the epoch */
export function afterReading(trouble: Trouble, answer: JobAnswer, heardAt: number): Trouble {
  if (answer.kind === 'job') return NO_TROUBLE;
  const { notFound } = trouble;
  return {
    last: answer,
    count: trouble.count + 1,
    notFound:
      answer.httpStatus === 404
        ? { count: (notFound?.count ?? 0) + 1, since: notFound?.since ?? heardAt }
        : null,
  };
}

/**
 * Whether a job that was read before is gone: five 404s in a row, the last one asked for at least `confirmMs` after the
 * first was received.
 */
export function isLost({ notFound }: Trouble, askedAt: number, confirmMs: number): boolean {
  return notFound !== null && notFound.count >= MIN_NOT_FOUND && askedAt - notFound.since >= confirmMs;
}

/** Whether the key is refused at present. A rotated key helps, so this is a delay and not an end. */
export function isUnauthorized({ last }: Pick<Trouble, 'last'>): boolean {
  return last?.httpStatus === 401 || last?.httpStatus === 403;
}
