import { expect, it } from '@jest/globals';
import type { FollowUpDescription, FollowUpFilter } from '../../src/entries/client';
import { checkFilter, matchesFilter, queryFromFilter } from '../../src/client/filter';

const FOUND: FollowUpDescription = {
  ...{ workflowId: 'follow-up:p:j:r', runId: 'run', state: 'failed', taskQueue: 'q', phase: 'failed' },
  ...{ startedAt: '2026-11-21T03:00:00.000Z', startsAt: null, endedAt: '2026-11-21T04:00:00.000Z' },
  ...{ outcome: 'FollowUpRejected', verdict: 'rejected', jobStatus: null, projectId: 'p', jobId: 'j' },
  ...{ evidence: null, workflowTaskFailure: null, receipt: null },
};
const RUNNING: Partial<FollowUpDescription> = {
  state: 'running',
  endedAt: null,
  outcome: null,
  verdict: null,
};

it.each<[boolean, FollowUpFilter, Partial<FollowUpDescription>?]>([
  [true, {}],
  [true, { outcome: 'FollowUpRejected' }],
  [true, { outcome: 'rejected' }],
  [false, { outcome: 'completed' }],
  [true, { outcome: 'unchanged' }, { outcome: 'completed', verdict: 'accepted', evidence: 'unchanged' }],
  [false, { outcome: 'unchanged' }, { outcome: 'completed', verdict: 'accepted', evidence: 'seen-active' }],
  [true, { canRetry: true }],
  [true, { canRetry: true }, { verdict: 'not-sent' }],
  [false, { canRetry: true }, { verdict: 'unknown' }],
  [false, { canRetry: true }, { verdict: 'accepted' }],
  [false, { canRetry: true }, { verdict: null, state: 'terminated' }],
  // A run that a reset made may still have the verdict of the run before.
  [false, { canRetry: true }, { state: 'running' }],
  [true, { canRetry: false }, RUNNING],
  [true, { startedAfter: '2026-11-21T03:00:00Z' }],
  [false, { startedAfter: '2026-11-21T03:00:00.001Z' }],
  [false, { startedBefore: '2026-11-21T03:00:00Z' }],
  [true, { startedBefore: '2026-11-21T05:00:01+02:00' }],
  [true, { endedAfter: new Date('2026-11-21T04:00:00Z'), endedBefore: new Date('2026-11-21T04:00:01Z') }],
  [false, { endedBefore: '2026-11-21T04:00:00Z' }],
  [false, { endedAfter: '2026-11-21T03:00:00Z' }, RUNNING],
  [false, { endedBefore: '2026-11-22T03:00:00Z' }, RUNNING],
])('%j: the filter %j for a follow-up with %j', (matches, filter, change = {}) => {
  expect(matchesFilter({ ...FOUND, ...change }, filter)).toBe(matches);
});

it('the query of the Temporal server has the outcome, the verdicts that allow a retry, and the times in UTC', () => {
  const filter = {
    phase: 'failed',
    outcome: 'JobNotFound',
    canRetry: true,
    endedBefore: '2026-11-21T05:00+02:00',
  } as const;
  expect(queryFromFilter(filter)).toBe(
    " AND FollowUpOutcome = 'JobNotFound' AND (FollowUpOutcome = 'not-sent' OR FollowUpOutcome = 'rejected')" +
      " AND CloseTime < '2026-11-21T03:00:00.000Z'",
  );
  expect(queryFromFilter({ canRetry: false })).toBe('');
});

it.each<[unknown, string]>([
  [null, 'filter: must be an object, not null'],
  ['failed', 'filter: must be an object, not of type string'],
  [
    { fase: 'failed' },
    'fase: is not a valid option; the valid options are phase, projectId, jobId, batchId, outcome, ',
  ],
  [{ projectId: 7 }, 'projectId: must be a non-empty, well-formed string; it is 7'],
  [{ outcome: "x' OR '1" }, 'outcome: must be an outcome, a verdict or an evidence'],
  [{ canRetry: 'yes' }, 'canRetry: must be true or false; it is "yes"'],
  [{ startedAfter: 'yesterday' }, 'startedAfter: must be a Date, or ISO 8601 with a time zone'],
  // Without a time zone, the time would depend on the computer.
  [{ endedAfter: '2026-11-21T03:00:00' }, 'endedAfter: must be a Date, or ISO 8601 with a time zone'],
  [{ endedBefore: new Date(NaN) }, 'endedBefore: must be a Date'],
  [{ startedBefore: 1_795_000_000_000 }, 'startedBefore: must be a Date'],
])('the filter %j is rejected with the field, the problem and the accepted values', (filter, problem) => {
  expect(() => {
    checkFilter(filter);
  }).toThrow(problem);
});
