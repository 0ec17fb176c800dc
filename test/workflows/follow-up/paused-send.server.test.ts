import { expect, it } from '@jest/globals';
import { eventually } from '../../../tools/lib/eventually';
import { ACCEPTED_BY_RESPONSE } from '../../harness/follow-up-under-test';
import { Operator } from '../../harness/operator';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, follow } = sharedEnvironment();

const HOLD = { name: 'hold', times: 1 } as const;
const RATE_LIMIT = { name: 'http-429', operation: 'message', times: 1 } as const;

// Proves P2.
it.each([
  ['its baseline read', [{ ...HOLD, operation: 'get' }], [true]],
  [
    'a POST that is rejected because of a rate limit',
    [{ ...HOLD, operation: 'message' }, RATE_LIMIT],
    [false, true],
  ],
] as const)(
  'a send that is paused during %s sends the message once, after it is unpaused',
  async (_, faults, posts) => {
    const following = await follow({}, {}, ...faults);
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
    expect(following.posts().map(({ processed }) => processed)).toEqual(posts.slice(0, -1));
    await operator.unpause(workflowId, 'sendMessage');
    expect(await following.outcomeSummary()).toMatchObject({ delivery: ACCEPTED_BY_RESPONSE, posts });
  },
);
