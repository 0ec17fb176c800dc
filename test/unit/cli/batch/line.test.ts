import { describe, expect, it } from '@jest/globals';
import { batchLine, failureLine } from '../../../../src/cli/render/batch-text';
import { end, progress } from './example';

describe('the progress line of a batch', () => {
  it('has the meter and the counts', () => {
    expect(batchLine(progress(), '25 %')).toBe(
      '25 % · open 10 · completed 45 · failed 3 · JobNotFound 2 · to come 140',
    );
  });

  it('begins with the state unless it is running', () => {
    expect(batchLine(progress({ state: 'paused' }), '25 %')).toMatch(
      /^paused; "batch resume" continues it · 25 % · /,
    );
  });

  it('shows unknown deliveries, and pages that are not handed over yet', () => {
    const pages = { total: 7, handedOver: 3, done: 0 };
    expect(batchLine(progress({ unknownDeliveries: 4, pages }), '')).toMatch(
      /unknown deliveries 4 · to come 140 · 3 of 7 pages handed over$/,
    );
  });

  it('has a line for a failed item, with what went wrong', () => {
    expect(failureLine(end(2, { outcome: 'failed', prLink: null }))).toBe('07:59:32Z failed  docs/job-2');
    expect(failureLine(end(3, { outcome: 'JobNotFound', prLink: null, message: 'no such job' }))).toBe(
      '07:59:33Z JobNotFound  docs/job-3  no such job',
    );
  });
});
