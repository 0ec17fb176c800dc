import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import {
  checkBatch,
  FollowUpClient,
  type StartBatchOptions,
  type CreateScheduleOptions,
} from '../../../src/entries/client';

/** The client never connects: each call is rejected before its first request. */
const followUps = new FollowUpClient(new Client());
const { batches, schedules } = followUps;

const ITEMS = [{ projectId: 'p', jobId: 'j', prompt: 'Hello' }];

describe('options that are wrong', () => {
  it.each([
    [{ concurrency: 0 }, 'concurrency: must be a whole number from 1 to 1000; it is 0'],
    [
      { maxFailures: '5%' },
      'maxFailures: must be { "items": N }, { "percent": P } with P from 0 to 100, or null (in the CLI: N or P%); it is "5%"',
    ],
    [{ maxFailures: { items: 1, percent: 5 } }, 'maxFailures: must be'],
    [{ concurency: 5 }, 'concurency: is not an option here; the options are concurrency, maxFailures'],
  ])('%j are refused before anything is started', async (wrong, problem) => {
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

  it('are refused with a batch id that is not one, and all at once', async () => {
    const start = batches.start(ITEMS, { batchId: '', concurrency: 0 });
    await expect(start).rejects.toThrow(/batchId: must not be empty.*; concurrency: must be/);
    await expect(batches.getHandle('nightly').setConcurrency(0)).rejects.toThrow('concurrency: must be');
    const schedule = schedules.create('nightly', ITEMS, {} as CreateScheduleOptions);
    await expect(schedule).rejects.toThrow('spec: is missing');
    const other = batches.start(await checkBatch(ITEMS), { batchId: 'other' });
    await expect(other).rejects.toThrow('batchId: is not an option here');
  });
});

describe('what no name, list or filter can be', () => {
  it.each([undefined, '', 5, 'half of \ud800'])('%j names nothing', (name) => {
    const wrong = name as string;
    expect(() => followUps.getHandle(wrong)).toThrow('workflowId: must be a well-formed text');
    expect(() => batches.getHandle(wrong)).toThrow('batchId: must be a well-formed text');
    expect(() => schedules.getHandle(wrong)).toThrow('scheduleId: must be a well-formed text');
  });

  it('is named, so that a misspelt filter does not list everything', () => {
    const filter = { project: 'docs', jobId: 5 } as object;
    expect(() => followUps.list(filter)).toThrow(
      /project: is not an option here.*; jobId: must be a well-formed text/,
    );
  });
});
