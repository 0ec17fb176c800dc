import { expect, it } from '@jest/globals';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../../harness/follow-up-under-test';
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
  const following = await follow(ENDLESS_TURN, asked, lost);
  const { deliveryUnknownReason } = await following.waitForProgress(
    ({ phase }) => phase === 'needs-decision',
  );
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
  await following.waitForProgress(({ nextPollAt, phase }) => phase === 'watching' && nextPollAt !== null);
  const again = following.update('resolveDelivery', 'delivered');
  await expect(again).rejects.toMatchObject(refused(/only in the phase needs-decision/));
  following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/7' });
  expect(await following.update('pollNow')).toMatchObject({ job: { status: 'completed' } });
  const delivery = { ...ACCEPTED_BY_RESPONSE, sends: 2 };
  expect(await following.outcomeSummary()).toMatchObject({
    status: 'completed',
    delivery,
    posts: [false, true],
  });
});
