import { describe, expect, it } from '@jest/globals';
import type { AgentJob } from '../../../src/core/job';
import type { JobAnswer } from '../../../src/core/activities';
import { afterReading, isLost, isUnauthorized, NO_TROUBLE } from '../../../src/core/tally';

const job: AgentJob = {
  id: 'j',
  status: 'active',
  source: { repository: null, ref: null },
  model: null,
  prLink: null,
  createdAt: null,
  archivedAt: null,
};
const http = (httpStatus: number): JobAnswer => ({ kind: 'trouble', label: '', message: '', httpStatus });

function afterAll(answers: JobAnswer[], everyMs: number) {
  return answers.reduce(
    (trouble, answer, index) => afterReading(trouble, answer, index * everyMs),
    NO_TROUBLE,
  );
}

describe('a job that answers 404', () => {
  const fiveNotFound = Array.from({ length: 5 }, () => http(404));

  it('is lost after five in a row that span confirm', () => {
    expect(isLost(afterAll(fiveNotFound, 15_000), 60_000, 60_000)).toBe(true);
  });

  it('is not lost after four, however long they last', () => {
    expect(isLost(afterAll(fiveNotFound.slice(1), 60_000), 180_000, 60_000)).toBe(false);
  });

  it('is not lost while the five span less than confirm', () => {
    expect(isLost(afterAll(fiveNotFound, 10_000), 40_000, 60_000)).toBe(false);
  });

  it.each([http(503), { kind: 'job', job } as const])('counts anew after another answer', (other) => {
    const answers = [...fiveNotFound.slice(1), other, ...fiveNotFound.slice(1)];
    expect(isLost(afterAll(answers, 60_000), 600_000, 60_000)).toBe(false);
  });
});

describe('trouble', () => {
  it('is counted in a row, and a readable answer ends it', () => {
    expect(afterAll([http(500), http(401)], 1).count).toBe(2);
    expect(afterAll([http(500), { kind: 'job', job }], 1)).toEqual(NO_TROUBLE);
  });

  it('is a refused key at 401 and 403 only', () => {
    expect([401, 403, 404, 500].map((status) => isUnauthorized(afterAll([http(status)], 1)))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });
});
