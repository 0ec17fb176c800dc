import { expect, it, jest } from '@jest/globals';
import { type Client, ServiceError } from '@temporalio/client';
import { readProgress } from '../../src/client/progress';
import { FOLLOW_UP_WORKFLOW } from '../../src/contract/names';
import type { FollowUpProgress } from '../../src/contract/result';
import { NOT_SENT_DELIVERY, UNKNOWN_DELIVERY } from '../harness/follow-up-under-test';

const rejection = () => {
  const cause = Object.assign(new Error('no'), { code: 4, details: 'no', metadata: {} });
  return Promise.reject(new ServiceError('no', { cause }));
};

/** The progress while a message is being sent. */
const SENDING = {
  phase: 'sending',
  delivery: UNKNOWN_DELIVERY,
  deliveryBeforeSend: NOT_SENT_DELIVERY,
} as unknown as FollowUpProgress;

/** Returns a client whose queries and descriptions of a follow-up with a pending send have these responses. */
function clientOf(query: () => Promise<FollowUpProgress>, describeSend?: () => Promise<never>): Client {
  const description = {
    ...{ type: FOLLOW_UP_WORKFLOW, workflowId: 'f', runId: 'r', status: { name: 'RUNNING' } },
    raw: { pendingActivities: [{ activityType: { name: 'sendMessage' }, activityId: '1' }] },
  };
  // The first description finds the run.
  let descriptions = 0;
  const describe = () =>
    (descriptions += 1) === 1 || !describeSend ? Promise.resolve(description) : describeSend();
  return {
    workflow: { getHandle: () => ({ describe, query }) },
    withDeadline: (_: number, call: () => unknown) => call(),
    options: { namespace: 'default' },
  } as unknown as Client;
}

const respond = () => Promise.resolve(SENDING);
const respondOnce = jest.fn<() => Promise<FollowUpProgress>>(rejection).mockImplementationOnce(respond);

it.each<[string, Client, object]>([
  ['succeed: the verdict is that before the send', clientOf(respond), NOT_SENT_DELIVERY],
  ['fail: the delivery is unknown', clientOf(respond, rejection), UNKNOWN_DELIVERY],
  ['fail at the second query: the delivery is unknown', clientOf(respondOnce), UNKNOWN_DELIVERY],
])(
  'the progress comes from the worker that has returned it, if the requests for a pending send %s',
  async (_, client, delivery) => {
    const report = await readProgress(client, { workflowId: 'f' });
    expect(report).toMatchObject({ from: 'worker', progress: { phase: 'sending', delivery } });
  },
);
