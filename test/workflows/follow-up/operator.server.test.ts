import { expect, it } from '@jest/globals';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment();

it('invalid updates are rejected with a reason, pollNow reads the job, and the decision not-delivered sends the message again', async () => {
  const polling = { initial: '5m', maximum: '5m' } as const;
  const options = {
    onUnknownDelivery: 'ask',
    reconcileTimeout: '300ms',
    maxStaleness: '500ms',
    polling,
  } as const;
  const lost = { name: 'reset', operation: 'message', times: 1 } as const;
  const following = await follow(ENDLESS_TURN, options, lost);
  const { deliveryUnknownReason } = await following.waitForProgress(
    ({ phase }) => phase === 'needs-decision',
  );
  expect(deliveryUnknownReason).toMatch(
    /\. Reading the job for 300ms showed no change that the message caused\.$/,
  );
  const rejection = (pattern: RegExp) => ({ cause: { message: expect.stringMatching(pattern) } });
  for (const duration of ['10', 10, undefined])
    await expect(following.update('extendDeadline', duration)).rejects.toMatchObject(
      rejection(/^duration: .*"30s"/),
    );
  await expect(following.update('resolveDelivery', 'perhaps')).rejects.toMatchObject(rejection(/./));
  // Clients in other languages may send null for an omitted argument.
  await following.update('resolveDelivery', 'not-delivered', null);
  await following.waitForProgress(({ nextPollAt, phase }) => phase === 'watching' && nextPollAt !== null);
  const secondDecision = following.update('resolveDelivery', 'delivered');
  await expect(secondDecision).rejects.toMatchObject(rejection(/only in the phase needs-decision/));
  following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/7' });
  expect(await following.update('pollNow')).toMatchObject({ job: { status: 'completed' } });
  const delivery = { ...ACCEPTED_BY_RESPONSE, sends: 2 };
  expect(await following.outcomeSummary()).toMatchObject({
    status: 'completed',
    delivery,
    posts: [false, true],
  });
});
