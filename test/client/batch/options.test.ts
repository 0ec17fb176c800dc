import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import {
  checkBatch,
  FollowUpClient,
  type StartBatchOptions,
  type CreateScheduleOptions,
} from '../../../src/entries/client';

/** This client never connects, because each call is rejected before its first request. */
const followUps = new FollowUpClient(new Client());
const { batches, schedules } = followUps;

const ITEMS = [{ projectId: 'p', jobId: 'j', prompt: 'Hello' }];

describe('invalid options', () => {
  it.each([
    [{ concurrency: 0 }, 'concurrency: must be a whole number from 1 to 1000; it is 0'],
    [
      { maxFailures: '5%' },
      'maxFailures: must be { "items": N }, { "percent": P } with P from 0 to 100, or null (in the CLI: N or P%); it is "5%"',
    ],
    [{ maxFailures: { items: 1, percent: 5 } }, 'maxFailures: must be'],
    [{ concurency: 5 }, 'concurency: is not a valid option; the valid options are concurrency, maxFailures'],
  ])('%j are rejected before anything is started', async (wrong, problem) => {
    const options = wrong as unknown as StartBatchOptions & CreateScheduleOptions;
    const checked = await checkBatch(ITEMS);
    for (const start of [
      () => batches.start(ITEMS, options),
      () => batches.start(checked, options),
      () => schedules.create('nightly', ITEMS, { ...options, spec: {} }),
      () => batches.getHandle('nightly').retry(options),
    ])
      await expect(start()).rejects.toThrow(problem);
  });

  it('are all reported at once, together with an invalid batch ID', async () => {
    const start = batches.start(ITEMS, { batchId: '', concurrency: 0 });
    await expect(start).rejects.toThrow(/batchId: must not be empty.*; concurrency: must be/);
    await expect(batches.getHandle('nightly').setConcurrency(0)).rejects.toThrow('concurrency: must be');
    const schedule = schedules.create('nightly', ITEMS, {} as CreateScheduleOptions);
    await expect(schedule).rejects.toThrow('spec: is missing');
    const other = batches.start(await checkBatch(ITEMS), { batchId: 'other' });
    await expect(other).rejects.toThrow('batchId: is not a valid option');
  });
});

describe('invalid IDs and filters', () => {
  it.each([undefined, '', 5, 'half of \ud800'])('%j is rejected as an ID', (name) => {
    const wrong = name as string;
    expect(() => followUps.getHandle(wrong)).toThrow('workflowId: must be a non-empty, well-formed string');
    expect(() => batches.getHandle(wrong)).toThrow('batchId: must be a non-empty, well-formed string');
    expect(() => schedules.getHandle(wrong)).toThrow('scheduleId: must be a non-empty, well-formed string');
  });

  it('an unknown or invalid filter is rejected, so that a misspelled filter does not list everything', () => {
    const filter = { project: 'docs', jobId: 5 } as object;
    expect(() => followUps.list(filter)).toThrow(
      /project: is not a valid option.*; jobId: must be a non-empty, well-formed string/,
    );
  });
});
