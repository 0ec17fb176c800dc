import { expect, it } from '@jest/globals';
import { BY_RESPONSE, ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment();

it('updates are rejected with a reason, read the job, and send a message again that an operator decided was not delivered', async () => {
  const polling = { initial: '5m', maximum: '5m' } as const;
  const asked = {
    onUnknownDelivery: 'ask',
    reconcileTimeout: '300ms',
    maxStaleness: '500ms',
    polling,
  } as const;
  const lost = { name: 'reset', operation: 'message', times: 1 } as const;
  const following = await follow(ENDLESS, asked, lost);
  const { deliveryUnknownReason } = await following.progressWhen(({ phase }) => phase === 'needs-decision');
  expect(deliveryUnknownReason).toMatch(
    /\. Reading the job for 300ms showed no change that the message caused\.$/,
  );
  const refused = (words: RegExp) => ({ cause: { message: expect.stringMatching(words) } });
  for (const duration of ['10', 10, undefined])
    await expect(following.update('extendDeadline', duration)).rejects.toMatchObject(
      refused(/^duration: .*"30s"/),
    );
  await expect(following.update('resolveDelivery', 'perhaps')).rejects.toMatchObject(refused(/./));
  await following.update('resolveDelivery', 'not-delivered');
  await following.progressWhen(({ nextPollAt, phase }) => phase === 'watching' && nextPollAt !== null);
  const again = following.update('resolveDelivery', 'delivered');
  await expect(again).rejects.toMatchObject(refused(/only in the phase needs-decision/));
  following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/7' });
  expect(await following.update('pollNow')).toMatchObject({ job: { status: 'completed' } });
  const delivery = { ...BY_RESPONSE, sends: 2 };
  expect(await following.ending()).toMatchObject({ status: 'completed', delivery, posts: [false, true] });
});
