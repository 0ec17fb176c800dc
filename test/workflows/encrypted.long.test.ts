import { ENCRYPTING } from '../harness/encryption';
import { expect, it } from '@jest/globals';
import { BY_RESPONSE, ENDLESS } from '../harness/following';
import { SOON, untilAttempt } from '../harness/pending-poll';
import { sharedEnvironment } from '../harness/shared-environment';

/** Their codec refuses what is not encrypted: whatever a follow-up leaves on the server must have passed it. */
const inProcess = sharedEnvironment({ dataConverter: ENCRYPTING });
const byRetries = sharedEnvironment({ dataConverter: ENCRYPTING, inProcessPolls: 0 });

it.concurrent('with encrypted payloads, a cancelled send leaves its receipt in the memo', async () => {
  // A local activity asks for what the send has recorded by its heartbeat.
  const following = await inProcess.follow(ENDLESS, {}, { name: 'hold', operation: 'message' });
  await following.reached({ operation: 'message' });
  await following.handle.cancel();
  following.release();
  expect(await following.receiptOfCancelled()).toMatchObject({ delivery: BY_RESPONSE });
});

it.concurrent('with encrypted payloads, a cancelled poll has the counts of its failed attempts', async () => {
  const following = await byRetries.follow(ENDLESS, { polling: SOON });
  await untilAttempt(following, 4);
  const { followUps } = await byRetries.open();
  const report = await followUps.getHandle(following.handle.workflowId).progress();
  // The workflow itself knows of two.
  expect(report.from === 'worker' ? report.progress.polls : 0).toBeGreaterThan(2);
  await following.handle.cancel();
  const { polls } = await following.receiptOfCancelled();
  // The look before the send is no poll; one more may be under way at the end.
  expect([1, 2]).toContain(following.gets() - polls);
});

it.concurrent('with encrypted payloads, a batch runs to its end', async () => {
  const batch = await inProcess.newBatch(2);
  await batch.start();
  expect(await batch.handle.result()).toMatchObject({ summary: { byStatus: { completed: 2 } } });
});
