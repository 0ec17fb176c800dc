import type { JobAnswer, Trouble } from '../contract/activities';

export const NO_TROUBLE: Trouble = { last: null, count: 0, notFound: null };

/** So many 404s in a row are needed: a replica that lags behind answers a few. */
const MIN_NOT_FOUND = 5;

/** @param heardAt when the answer was heard, in milliseconds since the epoch */
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
 * Whether a job that has answered once is gone: five 404s in a row, the last one asked for at least `confirmMs` after
 * the first was heard.
 */
export function isLost({ notFound }: Trouble, askedAt: number, confirmMs: number): boolean {
  return notFound !== null && notFound.count >= MIN_NOT_FOUND && askedAt - notFound.since >= confirmMs;
}

/** Whether the key is refused at present. A rotated key heals it, so that it is a delay and not an end. */
export function isUnauthorized({ last }: Pick<Trouble, 'last'>): boolean {
  return last?.httpStatus === 401 || last?.httpStatus === 403;
}
