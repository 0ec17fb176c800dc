import { expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { BY_RESPONSE, type Following, NOT_SENT } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment();

/** An operator pauses the send while it looks at the job; then the look ends. */
async function pausedInItsLook(asked: Parameters<typeof follow>[1] = {}) {
  const following = await follow({}, asked, { name: 'hold', operation: 'get', times: 1 });
  await following.reached({ fault: 'hold' });
  const operator = new Operator((await open()).client);
  await operator.pause(following.handle.workflowId, 'sendMessage');
  following.release();
  return { following, operator };
}

/** Waits for the end of the attempt, which leaves the activity pending, paused, and without a trace of a POST. */
async function untilItWaits({ handle }: Following): Promise<void> {
  const pending = await eventually('the attempt has ended', async () => {
    const { raw } = await handle.describe();
    return raw.pendingActivities?.find(({ attempt }) => attempt === 2);
  });
  expect(pending).toMatchObject({ paused: true, activityType: { name: 'sendMessage' } });
  expect(pending.heartbeatDetails?.payloads?.map(({ data }) => String(data))).toEqual(['null']);
}

// Proves P2.
it.concurrent('a send that is paused while it looks at the job sends once, when it is unpaused', async () => {
  const { following, operator } = await pausedInItsLook();
  await untilItWaits(following);
  expect(following.posts()).toEqual([]);
  await operator.unpause(following.handle.workflowId, 'sendMessage');
  expect(await following.ending()).toMatchObject({ delivery: BY_RESPONSE, posts: [true] });
});

// Proves P3.
it.concurrent('one that is cancelled meanwhile has sent nothing', async () => {
  const { following } = await pausedInItsLook();
  await untilItWaits(following);
  await following.handle.cancel();
  expect((await following.receiptOfCancelled()).delivery).toEqual(NOT_SENT);
  expect(following.posts()).toEqual([]);
});

it.concurrent('one whose deadline comes meanwhile has sent nothing', async () => {
  const { following } = await pausedInItsLook({ deadline: '5s' });
  expect(await following.ending()).toMatchObject({
    type: 'DeadlineExceeded',
    delivery: NOT_SENT,
    posts: [],
  });
});
