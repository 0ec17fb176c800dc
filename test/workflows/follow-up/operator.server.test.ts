import { expect, it } from '@jest/globals';
import { WorkflowUpdateFailedError } from '@temporalio/client';
import { BY_RESPONSE, ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment();

/** Whoever asks for an update is told why it is refused. */
async function expectRefused(update: Promise<unknown>, words: RegExp): Promise<void> {
  const error: unknown = await update.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(WorkflowUpdateFailedError);
  expect((error as WorkflowUpdateFailedError).cause?.message).toMatch(words);
}

// Proves P5.
it.concurrent(
  'the updates pollNow and resolveDelivery: the message is sent again if it did not arrive',
  async () => {
    const polling = { initial: '5m', maximum: '5m' } as const;
    const asked = { onUnknownDelivery: 'ask', reconcile: '300ms', confirm: '500ms', polling } as const;
    const lost = { name: 'reset', operation: 'message', times: 1 } as const;
    const following = await follow(ENDLESS, asked, lost);
    const { doubt } = await following.progressWhen(({ phase }) => phase === 'needs-decision');
    expect(doubt).toMatch(/\. Then reading the job for 300ms showed no change caused by the message\.$/);
    await following.update('resolveDelivery', 'not-delivered');
    await following.progressWhen(({ nextPollAt, phase }) => phase === 'watching' && nextPollAt !== null);
    following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/7' });
    expect(await following.update('pollNow')).toMatchObject({ job: { status: 'completed' } });
    const delivery = { ...BY_RESPONSE, sends: 2 };
    expect(await following.ending()).toMatchObject({ status: 'completed', delivery, posts: [false, true] });
  },
);

it.concurrent('an update is refused with the reason', async () => {
  const following = await follow(ENDLESS);
  for (const duration of ['10', 10, undefined])
    await expectRefused(following.update('extendDeadline', duration), /^duration: .*"30s"/);
  await following.progressWhen(({ phase }) => phase === 'watching');
  await expectRefused(following.update('resolveDelivery', 'delivered'), /needs-decision only/);
  await expectRefused(following.update('resolveDelivery', 'perhaps'), /./);
  await following.handle.terminate();
});
