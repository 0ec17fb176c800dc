import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import type { FollowUpProgress } from '../../../src/core/result';
import { eventually } from '../../harness/eventually';
import { BY_RESPONSE, ENDLESS, failureOf, UNKNOWN } from '../../harness/following';
import { resetBefore, resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment();

/** A POST of which nobody knows whether it arrived; it did not. */
const LOST = { name: 'reset', operation: 'message' } as const;
const RESEND = { onUnknownDelivery: 'resend', reconcile: '500ms' } as const;
const UNTOLD = { type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: [true] };

const isWatching = ({ phase, polls }: FollowUpProgress) => phase === 'watching' && polls > 0;
const asks = ({ phase }: FollowUpProgress) => phase === 'needs-decision';

/** Takes the last workflow task back. */
async function resetLastTask(handle: WorkflowHandle): Promise<WorkflowHandle> {
  return resetToTask(handle, (await workflowTasks(handle)).at(-1));
}

describe('a follow-up that is reset after its message was accepted', () => {
  it.concurrent.each([
    { how: 'its turn over', job: {}, words: 'this run was reset to a point before its send' },
    { how: 'its turn running', job: ENDLESS, words: 'the job was active before' },
    { how: 'with resend, a permission of the first run', job: {}, asked: RESEND, words: 'was reset' },
  ])('to before the send, $how: DeliveryUnknown, and nothing is sent', async ({ job, asked, words }) => {
    const following = await follow(job, asked);
    await (job === ENDLESS ? following.progressWhen(isWatching) : following.result());
    const again = await resetBefore('send', following.handle);
    expect(await following.ending(again)).toEqual(UNTOLD);
    expect((await failureOf(again)).message).toContain(words);
  });

  it.concurrent('after its deadline: it does not say that nothing was sent', async () => {
    const following = await follow({}, { deadline: '5s' });
    // On a busy machine by its deadline.
    await following.ending();
    await sleep(5_000);
    const again = await resetBefore('start', following.handle);
    const { type, message, details } = await failureOf(again);
    expect(type).toBe('DeadlineExceeded');
    expect(message).not.toContain('Nothing was sent');
    expect(details.followUp.delivery.verdict).toBe('unknown');
  });

  it.concurrent('twice: the run of the second reset sends nothing either', async () => {
    const following = await follow();
    await following.result();
    for (const point of ['start', 'send'] as const) {
      const again = await resetBefore(point, following.handle);
      expect((await failureOf(again)).type).toBe('DeliveryUnknown');
    }
    expect(following.processed()).toEqual([true]);
  });

  it.concurrent('with its turn running and assume-delivered is watched to its end', async () => {
    const following = await follow(ENDLESS, { onUnknownDelivery: 'assume-delivered' });
    await following.progressWhen(isWatching);
    const again = await resetBefore('send', following.handle);
    await following.reached({ operation: 'get' }, { atLeast: 5 });
    following.changeJob({ status: 'completed', prLink: 'https://code.test/pull/1' });
    const delivery = { confirmedBy: 'assumed' };
    const ending = { status: 'completed', delivery, evidence: 'job-changed', posts: [true] };
    expect(await following.ending(again)).toMatchObject(ending);
  });
});

describe('a follow-up that is reset after a second POST was allowed', () => {
  it.concurrent.each([
    ['by an operator', 'ask'],
    ['by the caller', 'resend'],
  ] as const)('%s goes on, and sends nothing more', async (_, onUnknownDelivery) => {
    const asked = { onUnknownDelivery, reconcile: '500ms', deadline: '60s' } as const;
    const following = await follow(ENDLESS, asked, { ...LOST, times: 1 });
    if (onUnknownDelivery === 'ask') {
      await following.progressWhen(asks);
      await following.update('resolveDelivery', 'not-delivered');
    }
    await following.progressWhen(isWatching);
    const again = await resetLastTask(following.handle);
    following.changeJob({ status: 'completed' });
    const ending = { status: 'completed', delivery: { ...BY_RESPONSE, sends: 2 }, posts: [false, true] };
    expect(await following.ending(again)).toMatchObject(ending);
  });
});

describe('a follow-up that is reset', () => {
  it.concurrent('to behind a POST that was not answered counts that POST once', async () => {
    const asked = { onUnknownDelivery: 'ask', reconcile: '500ms', deadline: '60s' } as const;
    const following = await follow({}, asked, LOST);
    await following.progressWhen(asks);
    const again = await resetLastTask(following.handle);
    await eventually('it asks again', () => again.query<FollowUpProgress>('progress'), { until: asks });
    await following.update('resolveDelivery', 'delivered');
    const { delivery, posts } = await following.ending(again);
    expect(delivery).toEqual({ verdict: 'accepted', confirmedBy: 'operator', sends: 1 });
    expect(posts).toEqual([false]);
  });

  it.concurrent(
    'before its message was sent ends as DeliveryUnknown, for nobody can tell that it was not',
    async () => {
      const following = await follow({ status: 'active', ...ENDLESS }, { whenActive: 'wait' });
      await following.progressWhen(({ phase }) => phase === 'waiting');
      const again = await resetBefore('start', following.handle);
      following.changeJob({ status: 'completed' });
      expect(await following.ending(again)).toMatchObject({ type: 'DeliveryUnknown', posts: [] });
    },
  );
});
