import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Context } from '@temporalio/activity';
import { ServiceError } from '@temporalio/client';
import { BatchItemStore } from '../../../src/activities/batch/batch-item-store';
import { closeChunks, runItems } from '../../../src/activities/batch/run-items';
import { type BatchBoard, EMPTY_BOARD } from '../../../src/batch/board';
import { GROUP_SIZE } from '../../../src/batch/next-batch-step';
import { type BatchMemo, MEMO_BATCH } from '../../../src/batch/memo';
import { type RecordedOutcome, createOutcomeWithoutReceipt } from '../../../src/contract/outcome';

/** Records the workflow IDs of the cancelled workflows. */
const cancelled = jest.fn<(workflowId: string) => Promise<void>>(() => Promise.resolve());

afterEach(() => {
  cancelled.mockClear();
  jest.restoreAllMocks();
});

/** The batch has two jobs with two items each. No item was started, and all items may start, because the bound is at the end. */
const MEMO: BatchMemo = {
  ...EMPTY_BOARD,
  ...{ batchId: 'b', items: 4, digest: null, retryScope: null, startedAt: '2026-01-01T00:00:00.000Z' },
  ...{
    concurrency: 2,
    maxFailures: null,
    activityCount: 1,
    isPaused: false,
    stopReason: null,
    activityStartedAt: 0,
  },
  ...{ cursor: 4, startLimit: 4 },
  lanes: [0, 2].map((next) => ({ next, end: next + 2, state: 'pending' })),
};

function contextOf(client: object): void {
  const info = { attempt: 1, scheduledTimestampMs: 0, currentAttemptScheduledTimestampMs: Date.now() };
  const context = { client, info, cancellationSignal: { aborted: false } } as unknown as Context;
  jest.spyOn(Context, 'current').mockReturnValue(context);
}

/** Prepares a round with a fake Temporal server. The parameter `server` replaces methods of the item store. */
function prepareRound(server: Partial<BatchItemStore>, memo: Partial<BatchMemo>): void {
  const describe = () => Promise.resolve({ memo: { [MEMO_BATCH]: { ...MEMO, ...memo } }, raw: {} });
  contextOf({ workflow: { getHandle: (id: string) => ({ describe, cancel: () => cancelled(id) }) } });
  const workflowId = (item: number) => `follow-up:p:${item < 2 ? 'one' : 'two'}:${item}`;
  const parts = {
    identify: (item: number) => Promise.resolve({ workflowId: workflowId(item), promptDigest: '' }),
    listRunning: () => Promise.resolve(new Set<string>()),
    getFact: () => Promise.resolve(null),
    ...server,
  };
  for (const [name, part] of Object.entries(parts))
    jest.spyOn(BatchItemStore.prototype, name as 'getFact').mockImplementation(part as never);
}

/** Runs a round that another round follows. @returns the last board that the round recorded */
async function roundOf(server: Partial<BatchItemStore>, memo: Partial<BatchMemo> = {}): Promise<BatchBoard> {
  prepareRound(server, memo);
  const record = jest.spyOn(BatchItemStore.prototype, 'recordBoard').mockResolvedValue(() => 10_000);
  await expect(runItems({ chunks: undefined })).rejects.toMatchObject({ type: 'PollAgain' });
  return record.mock.lastCall?.[0] ?? EMPTY_BOARD;
}

const FIRST = 'follow-up:p:one:0';

describe('a round of a batch', () => {
  it('reports an item whose start the Temporal server rejects, and starts the other items', async () => {
    const start: BatchItemStore['start'] = ({ next }) =>
      Promise.resolve(
        next === 0
          ? { kind: 'rejected', reason: 'the namespace\nis full' }
          : { kind: 'running', workflowId: 'w', isStartedByBatch: true },
      );
    expect(await roundOf({ start })).toMatchObject({
      lanes: [{ state: 'starting' }, { state: 'running' }],
      blockedItem: {
        workflowId: FIRST,
        reason: 'the item could not be started: the namespace is full',
      },
    });
  });

  it('reports an item whose outcome can’t be read, on the board and in the failure of the attempt', async () => {
    const fact: BatchItemStore['getFact'] = () =>
      Promise.resolve({ kind: 'unreadable', workflowId: FIRST, reason: 'no key' });
    const lanes = MEMO.lanes.map((lane) => ({ ...lane, state: 'running' }) as const);
    const board = await roundOf({ getFact: fact }, { lanes });
    expect(board).toMatchObject({ lanes, blockedItem: { workflowId: FIRST, reason: 'no key' } });
    const message = `the item ${FIRST} can't proceed: no key`;
    await expect(runItems({ chunks: undefined })).rejects.toMatchObject({ type: 'PollAgain', message });
  });

  // Proves B5, B9.
  it('does not start a deleted item of an earlier run again after the Temporal server rejects a retry of the item before it', async () => {
    const rejected: RecordedOutcome = {
      ...{ outcome: 'FollowUpRejected', delivery: 'rejected' },
      ...{ evidence: null, prLink: null, message: null },
    };
    const fact: BatchItemStore['getFact'] = (_board, _memo, { next }) => {
      const workflowId = `follow-up:p:one:${next}`;
      const ended = { kind: 'ended', workflowId, runId: 'run', startedAt: 0 } as const;
      return Promise.resolve({
        ...ended,
        outcome: next === 0 ? rejected : createOutcomeWithoutReceipt('missing'),
      });
    };
    const start = jest.fn<BatchItemStore['start']>(({ next, retriedRunId }) =>
      Promise.resolve({
        ...{ kind: 'ended', workflowId: `follow-up:p:one:${next}`, isFinal: true },
        ...{ outcome: rejected, runId: retriedRunId, startedAt: 0 },
      } as const),
    );
    const startedEarlier = { cursor: 2, lanes: [] };
    const lanes = [{ next: 0, end: 2, state: 'pending' } as const];
    const earlier = { items: 2, cursor: 2, startLimit: 2, retryScope: 'unsent', startedEarlier } as const;
    prepareRound(
      { getFact: fact, start, recordBoard: () => Promise.resolve(() => 10_000) },
      { ...earlier, lanes },
    );
    const board = await runItems({ chunks: undefined });
    expect(start.mock.calls.map(([{ next, retriedRunId }]) => [next, retriedRunId])).toEqual([[0, 'run']]);
    expect(board).toMatchObject({ ended: 2, byFailure: { FollowUpRejected: 1, missing: 1 } });
  });

  it('starts no further group after the batch was paused during a round', async () => {
    const workflowId = (item: number) => `follow-up:p:job-${item}:r`;
    const lanes = Array.from(
      { length: 12 },
      (_, next) => ({ next, end: next + 1, state: 'pending' }) as const,
    );
    const memo = { items: 12, cursor: 12, startLimit: 12, concurrency: 12, lanes, isPaused: false };
    const start = jest.fn<BatchItemStore['start']>(({ next }) => {
      memo.isPaused = true;
      return Promise.resolve({ kind: 'running', workflowId: workflowId(next), isStartedByBatch: true });
    });
    const identify = (item: number) => Promise.resolve({ workflowId: workflowId(item), promptDigest: '' });
    await roundOf({ start, identify }, memo);
    expect(start).toHaveBeenCalledTimes(GROUP_SIZE);
  });

  it('cancels every running follow-up of the batch, including one that is in no lane', async () => {
    const lanes = [{ next: 0, end: 2, state: 'running' } as const];
    const fact: BatchItemStore['getFact'] = () =>
      Promise.resolve({ kind: 'running', workflowId: FIRST, isStartedByBatch: true });
    const listRunning = () => Promise.resolve(new Set(['other']));
    await roundOf({ getFact: fact, listRunning }, { lanes, stopReason: 'cancel-running' });
    expect(cancelled.mock.calls.flat().sort()).toEqual([FIRST, 'other']);
  });
});

it('closing the chunks fails without retries if the worker may not terminate workflows', async () => {
  const cause = Object.assign(new Error('denied'), { code: 7, details: 'denied', metadata: {} });
  const terminate = () => Promise.reject(new ServiceError('Failed to terminate', { cause }));
  contextOf({ workflow: { getHandle: () => ({ terminate }) } });
  const closed = closeChunks({ batchId: 'b', digest: 'd', chunks: { items: 1, firsts: [0] } });
  await expect(closed).rejects.toMatchObject({ nonRetryable: true });
});
