import { expect, it } from '@jest/globals';
import { eventually } from '../../../tools/lib/eventually';
import { ACCEPTED_BY_RESPONSE } from '../../harness/follow-up-under-test';
import { Operator } from '../../harness/operator';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment();

// Proves P2.
it('a send that is paused during its baseline read sends the message once, after it is unpaused', async () => {
  const following = await follow({}, {}, { name: 'hold', operation: 'get', times: 1 });
  await following.waitForRequest({ fault: 'hold' });
  const operator = new Operator((await open()).client);
  const { workflowId } = following.handle;
  await operator.pause(workflowId, 'sendMessage');
  following.releaseHeldRequests();
  const pending = await eventually('the first attempt of the send has ended', async () => {
    const { raw } = await following.handle.describe();
    return raw.pendingActivities?.find(({ attempt }) => attempt === 2);
  });
  expect(pending).toMatchObject({ paused: true, activityType: { name: 'sendMessage' } });
  expect(pending.heartbeatDetails?.payloads?.map(({ data }) => String(data))).toEqual(['null']);
  expect(following.posts()).toEqual([]);
  await operator.unpause(workflowId, 'sendMessage');
  expect(await following.outcomeSummary()).toMatchObject({ delivery: ACCEPTED_BY_RESPONSE, posts: [true] });
});
