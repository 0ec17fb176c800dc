import { writeFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { checkSequences } from './property';

it('in 100,000 sequences of events, each POST has a permit, and each result comes from a fresh read', () => {
  const figures = checkSequences(100_000);
  writeFileSync('reports/sequences.json', `${JSON.stringify(figures, null, 2)}\n`);
  expect(figures.sequences).toBe(100_000);
  // Every kind of outcome occurs.
  expect(Object.keys(figures.ends).sort()).toEqual([
    'DeadlineExceeded',
    'DeliveryUnknown',
    'FollowUpRejected',
    'JobNotFound',
    'cancelled',
    'result (active-before)',
    'result (job-changed)',
    'result (seen-active)',
    'result (status-changed)',
    'result (unchanged)',
  ]);
});
