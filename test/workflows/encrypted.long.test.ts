import { ENCRYPTING } from '../harness/encryption';
import { expect, it } from '@jest/globals';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN, progressFromWorker } from '../harness/follow-up-under-test';
import { POLL_EVERY_SECOND, waitForAttempt } from '../harness/pending-poll';
import { sharedEnvironment } from '../harness/shared-environment';

/** The codec rejects a payload that is not encrypted, so each test fails if a payload did not pass the codec. */
const { open, follow, newBatch } = sharedEnvironment({ dataConverter: ENCRYPTING });

it.concurrent(
  'with encrypted payloads, a follow-up that is cancelled during its send leaves its receipt in the memo',
  async () => {
    // A local activity reads the send's checkpoint.
    const following = await follow(ENDLESS_TURN, {}, { name: 'hold', operation: 'message' });
    await following.waitForRequest({ operation: 'message' });
    await following.handle.cancel();
    following.releaseHeldRequests();
    expect(await following.cancelledReceipt()).toMatchObject({ delivery: ACCEPTED_BY_RESPONSE });
  },
);

it.concurrent(
  'with encrypted payloads, a cancelled follow-up counts the reads of its pending poll',
  async () => {
    const following = await follow(ENDLESS_TURN, { polling: POLL_EVERY_SECOND });
    await waitForAttempt(following, 4);
    const { followUps } = await open();
    const progress = await progressFromWorker(followUps.getHandle(following.handle.workflowId));
    // The workflow has counted two polls, and the client adds the reads of the pending `pollJob`.
    expect(progress.polls).toBeGreaterThan(2);
    await following.handle.cancel();
    const { polls } = await following.cancelledReceipt();
    // The baseline read is not a poll, and one more read may be in progress at the end.
    expect([1, 2]).toContain(following.readCount() - polls);
  },
);

it.concurrent('with encrypted payloads, a batch runs to its end', async () => {
  const batch = await newBatch(2);
  await batch.start();
  expect(await batch.handle.result()).toMatchObject({ summary: { byStatus: { completed: 2 } } });
});
