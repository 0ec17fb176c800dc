import { describe, expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import type { FollowUpProgress } from '../../../src/core/result';
import { eventually } from '../../harness/eventually';
import { ENDLESS, type FollowUpCaller, type Following } from '../../harness/following';
import { ProcessEnvironment } from '../../harness/process-environment';
import { eventsOf, resetToTask } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment();

/** The job is active before the send, so that reading proves nothing, and nobody knows of the first POST. */
async function asking(caller: FollowUpCaller): Promise<Following> {
  const asked = { onUnknownDelivery: 'ask', deadline: '2m' } as const;
  const lost = { name: 'close-after-read', operation: 'message', times: 1 } as const;
  const following = await caller.follow({ status: 'active', ...ENDLESS }, asked, lost);
  await asks(following.handle);
  return following;
}

async function asks(run: WorkflowHandle): Promise<void> {
  await eventually('the follow-up asks', () => run.query<FollowUpProgress>('progress'), {
    until: ({ phase }) => phase === 'needs-decision',
  });
}

describe('a decision not-delivered', () => {
  it.concurrent('sends again in the run that it names, or in the first one if it names none', async () => {
    for (const named of [true, false]) {
      const following = await asking(await open());
      await following.update('resolveDelivery', 'not-delivered', ...(named ? [following.firstRunId] : []));
      await following.progressWhen(({ delivery }) => delivery.confirmedBy === 'response');
      expect(following.processed()).toEqual([false, true]);
    }
  });

  it.concurrent('that a reset re-applies sends nothing, until somebody decides for the new run', async () => {
    const following = await asking(await open());
    const decide = (...run: string[]) => following.update('resolveDelivery', 'not-delivered', ...run);
    await decide(following.firstRunId);
    await following.progressWhen(({ delivery }) => delivery.confirmedBy === 'response');

    // To right before the workflow task that took the decision.
    const events = await eventsOf(following.handle);
    const taken = events.findIndex((event) => event.workflowExecutionUpdateAcceptedEventAttributes);
    const tasks = events.slice(0, taken).filter((event) => event.workflowTaskCompletedEventAttributes);
    const again = await resetToTask(following.handle, tasks.at(-1));
    await asks(again);
    await expect(decide()).rejects.toThrow();
    await expect(decide(following.firstRunId)).rejects.toThrow();
    expect(following.processed()).toEqual([false, true]);

    await decide((await again.describe()).runId);
    await following.reached({ operation: 'message' }, { atLeast: 3 });
    following.changeJob({ status: 'completed' });
    const { delivery, posts } = await following.ending(again);
    expect(delivery.confirmedBy).toBe('response');
    expect(posts).toHaveLength(3);
  });
});

it.concurrent(
  'decisions at once while the worker stands still: one is followed, the others are refused',
  () =>
    ProcessEnvironment.with({}, async (environment) => {
      const worker = await environment.startWorker();
      const following = await asking(environment);
      worker.signal('SIGSTOP');
      const made = (['delivered', 'not-delivered', 'delivered'] as const).map(async (decision) => {
        await following.update('resolveDelivery', decision, following.firstRunId);
        return decision;
      });
      setTimeout(() => {
        worker.signal('SIGCONT');
      }, 2_000);
      const settled = await Promise.allSettled(made);
      const taken = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      expect(taken).toHaveLength(1);
      const { delivery } = await following.progressWhen(({ phase }) => phase !== 'needs-decision');
      const confirmedBy = taken[0] === 'delivered' ? 'operator' : 'response';
      await following.progressWhen((progress) => progress.delivery.confirmedBy === confirmedBy);
      expect(delivery.verdict).not.toBe('not-sent');
      expect(following.posts()).toHaveLength(taken[0] === 'delivered' ? 1 : 2);
    }),
);
