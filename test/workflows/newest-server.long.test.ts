import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { QUERY_PROGRESS } from '../../src/core/names';
import type { FollowUpProgress, Phase } from '../../src/core/result';
import type { BatchOfTest } from '../harness/batch-of-test';
import { eventually } from '../harness/eventually';
import { BY_READ, BY_RESPONSE, ENDLESS } from '../harness/following';
import { sharedEnvironment } from '../harness/shared-environment';

/**
 * What a server can do besides, off by default: pause workflows (1.30 and later), and tell workers to cancel the activities
 * of a workflow that has closed (1.32).
 */
const DYNAMIC_CONFIG = {
  'frontend.WorkflowPauseEnabled': true,
  'frontend.WorkerCommandsEnabled': true,
  'system.enableCancelActivityWorkerCommand': true,
};

const { follow, newBatch } = sharedEnvironment({
  dynamicConfig: DYNAMIC_CONFIG,
  httpTimeoutMs: 8_000,
  lookEveryMs: 1_000,
});

/**
 * Reads so rare that no workflow is paused while a workflow task of it is scheduled and not started. The SDK's core can't
 * replay that (measured with 1.24: "WorkflowTaskMachine in state Scheduled says the transition is invalid").
 */
const SELDOM = { initial: '2s', growth: 0, maximum: '2s', jitter: 0 } as const;

/** Longer than the waits of the tests' follow-ups, and than three looks of a page. */
const PAUSE_MS = 6_000;

function requestOf({ client, workflowId }: WorkflowHandle) {
  const { namespace } = client.options;
  return { namespace, workflowId, requestId: randomUUID(), reason: 'a test', identity: 'a test' };
}

/** Pauses a workflow for a while, as `temporal workflow pause` and `unpause` do. */
async function pauseAwhile(handle: WorkflowHandle, meanwhile: () => unknown = () => undefined) {
  const { workflowService } = handle.client;
  const status = async () => (await handle.client.getHandle(handle.workflowId).describe()).status.name;
  await workflowService.pauseWorkflowExecution(requestOf(handle));
  await eventually('it is paused', async () => (await status()) === 'PAUSED');
  await meanwhile();
  await sleep(PAUSE_MS);
  expect(await status()).toBe('PAUSED');
  await workflowService.unpauseWorkflowExecution(requestOf(handle));
}

it.concurrent('a POST is not cancelled when its workflow closes', async () => {
  const held = { name: 'hold', operation: 'message', parameters: { processed: 'after' } } as const;
  const following = await follow({}, {}, held);
  await following.reached({ operation: 'message' });
  await following.handle.terminate();
  await sleep(2_000);
  following.release();
  const answered = { operation: 'message', ending: 'answered' } as const;
  expect(await following.reached(answered)).toMatchObject([{ processed: true, status: 200 }]);
});

describe('a follow-up that is paused', () => {
  const completedOnce = { status: 'completed', delivery: BY_RESPONSE, posts: [true] };

  it.concurrent('while its POST is under way keeps the answer', async () => {
    const held = { name: 'hold', operation: 'message', parameters: { processed: 'before' } } as const;
    const following = await follow({}, { deadline: '60s', polling: SELDOM }, held);
    await following.reached({ operation: 'message' });
    await pauseAwhile(following.handle, () => {
      following.release();
    });
    expect(await following.ending()).toMatchObject(completedOnce);
  });

  const times = { deadline: '60s', polling: SELDOM, confirm: '2s', settle: '2s', reconcile: '2s' } as const;
  const LOST = { name: 'processed-then-close', operation: 'message' } as const;
  const byRead = { status: 'completed', delivery: BY_READ, posts: [true] };
  const byTimers = { ...times, polling: { ...SELDOM, timerPolls: 'all' } } as const;
  const byActivity = { ...times, polling: { ...SELDOM, timerPolls: 0 } } as const;
  const phases: [Phase, Parameters<typeof follow>, object][] = [
    [
      'waiting',
      [
        { status: 'active', ...ENDLESS },
        { ...times, whenActive: 'wait' },
      ],
      completedOnce,
    ],
    ['watching', [ENDLESS, byTimers], completedOnce],
    ['watching', [ENDLESS, byActivity], completedOnce],
    ['reconciling', [ENDLESS, { ...times, reconcile: '20s', confirm: '5s' }, LOST], byRead],
    [
      'needs-decision',
      [{ status: 'active', ...ENDLESS }, { ...times, onUnknownDelivery: 'ask' }, LOST],
      { ...byRead, delivery: { ...BY_READ, confirmedBy: 'operator' } },
    ],
    ['confirming', [{ turn: { durationMs: 0 } }, { ...times, confirm: '8s' }], completedOnce],
    ['settling', [{ turn: { outcome: 'no-change' } }, { ...times, settle: '10s' }], completedOnce],
    ['unauthorized', [ENDLESS, times], completedOnce],
  ];
  it.concurrent.each(phases)(
    'in the phase %s goes on in it',
    async (phase, [job, asked, ...faults], ending) => {
      const following = await follow(job, asked, ...faults);
      if (phase === 'unauthorized') {
        await following.reached({ operation: 'message', processed: true });
        following.setFault({ name: 'unauthorized', operation: 'get' });
      }
      await following.progressWhen((progress) => progress.phase === phase);
      await pauseAwhile(following.handle, () => {
        following.clearFaults();
        if (phase === 'waiting') following.changeJob({ status: 'completed' });
      });
      if (phase === 'needs-decision') await following.update('resolveDelivery', 'delivered');
      if (job?.turn?.durationMs === null) {
        await following.progressWhen((progress) => progress.phase === 'watching');
        following.changeJob({ status: 'completed' });
      }
      expect(await following.ending()).toMatchObject(ending);
    },
  );
});

describe('of a batch', () => {
  const PARTS = {
    page: (batch: BatchOfTest) => batch.pageHandle(1),
    batch: (batch: BatchOfTest) => batch.workflow,
    item: (batch: BatchOfTest) => batch.itemHandle(0),
  };

  /** Two of three items are open, and nothing moves but their reads. */
  async function running() {
    const batch = await newBatch(3, ENDLESS, { polling: SELDOM });
    await batch.startUntilSent(2, { concurrency: 2 });
    await batch.progressWhen((progress) => progress.open === 2);
    const item = await batch.itemHandle(0);
    const watches = async () => (await item.query<FollowUpProgress>(QUERY_PROGRESS)).phase === 'watching';
    await eventually('the item is watched', watches);
    return batch;
  }

  async function expectEachSentOnce(batch: BatchOfTest) {
    batch.endTurns();
    await batch.sent(3);
    const summary = { settled: 3, byStatus: { completed: 3 } };
    expect(await batch.finish()).toMatchObject({ state: 'done', summary });
    expect(batch.messages()).toEqual([1, 1, 1]);
  }

  it.concurrent.each(['page', 'batch', 'item'] as const)('a paused %s loses nothing', async (part) => {
    const batch = await running();
    await pauseAwhile(await PARTS[part](batch));
    await expectEachSentOnce(batch);
  });

  it.concurrent.each(['page', 'item'] as const)(
    'a paused %s has not ended for the next run',
    async (part) => {
      const batch = await running();
      await pauseAwhile(await PARTS[part](batch), async () => {
        await batch.terminate();
        await batch.start();
      });
      await expectEachSentOnce(batch);
    },
  );
});
