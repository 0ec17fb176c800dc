import { expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import type { FollowUpProgress } from '../../../src/core/result';
import { eventually } from '../../harness/eventually';
import { ENDLESS, failureOf, UNKNOWN } from '../../harness/following';
import { eventsOf, resetBefore, resetToTask } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment();
const { follow: followSkippingTime } = sharedEnvironment({ skipsTime: true });

async function asks(run: WorkflowHandle): Promise<void> {
  await eventually('the follow-up asks', () => run.query<FollowUpProgress>('progress'), {
    until: ({ phase }) => phase === 'needs-decision',
  });
}

// Proves T2.
it.concurrent(
  'a follow-up that is reset to before its send ends as DeliveryUnknown, and nothing is sent',
  async () => {
    const following = await followSkippingTime();
    await following.result();
    const again = await resetBefore('send', following.handle);
    const ending = { type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: [true] };
    expect(await following.ending(again)).toEqual(ending);
    expect((await failureOf(again)).message).toContain('this run was reset to a point before its send');
  },
);

// Proves T3.
it.concurrent(
  'a decision that a reset re-applies sends nothing, until somebody decides for the new run',
  async () => {
    // The job is active before the send, so that reading proves nothing, and nobody knows of the first POST.
    const lost = { name: 'close-after-read', operation: 'message', times: 1 } as const;
    const following = await follow({ status: 'active', ...ENDLESS }, { onUnknownDelivery: 'ask' }, lost);
    await asks(following.handle);
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
  },
);
