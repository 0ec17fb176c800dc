import type { JobAnswer, Tally, Trouble } from './activities';
import { type JobState, sameState } from './job';

export function startTally(trouble: Trouble): Tally {
  return { polls: 0, observed: {}, trouble, lastAnswer: null, nextReadAt: null };
}

/** What a watch and a poll count alike. */
export function countsAfter(
  { polls, observed, trouble }: Pick<Tally, 'polls' | 'observed' | 'trouble'>,
  answer: JobAnswer,
  heardAt: number,
) {
  const label = answer.kind === 'job' ? answer.job.status : answer.label;
  return {
    polls: polls + 1,
    observed: addCounts(observed, { [label]: 1 }),
    trouble: afterReading(trouble, answer, heardAt),
  };
}

/** Whether the workflow must decide. All else is a delay. */
export function needsDecision(answer: JobAnswer, known: JobState): boolean {
  if (answer.kind === 'job') return !sameState(answer.job, known);
  return answer.httpStatus === 404 || isUnauthorized({ last: answer });
}

export function textOf(answer: JobAnswer): string {
  return answer.kind === 'job' ? answer.job.status : answer.message;
}

type Counts = Tally['observed'];

/** New words for ever must not fill the history: beyond so many, answers count as `other`. */
const MAX_KEYS = 32;

export function addCounts(...all: readonly Counts[]): Counts {
  const sum = new Map<string, number>();
  for (const counts of all)
    for (const [name, times] of Object.entries(counts)) {
      const key = sum.has(name) || sum.size < MAX_KEYS ? name : 'other';
      sum.set(key, (sum.get(key) ?? 0) + times);
    }
  return Object.fromEntries(sum);
}

export const NO_TROUBLE: Trouble = { last: null, count: 0, notFound: null };

/** A replica that lags behind answers a few. */
const MIN_NOT_FOUND = 5;

export function afterReading(trouble: Trouble, answer: JobAnswer, heardAt: number): Trouble {
  if (answer.kind === 'job') return NO_TROUBLE;
  const { count, since } = trouble.notFound ?? { count: 0, since: heardAt };
  const notFound = answer.httpStatus === 404 ? { count: count + 1, since } : null;
  return { last: answer, count: trouble.count + 1, notFound };
}

/** Whether a job that was read before is gone. @param freshFrom from when on an answer says so */
export function isLost({ notFound }: Trouble, askedAt: number, confirmMs: number, freshFrom = 0): boolean {
  if (notFound === null || askedAt < freshFrom) return false;
  return notFound.count >= MIN_NOT_FOUND && askedAt - notFound.since >= confirmMs;
}

/** A rotated key helps, so this is a delay and not an end. */
export function isUnauthorized({ last }: Pick<Trouble, 'last'>): boolean {
  return last?.httpStatus === 401 || last?.httpStatus === 403;
}
