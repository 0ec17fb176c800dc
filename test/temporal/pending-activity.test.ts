import { expect, it } from '@jest/globals';
import { Client, type WorkflowExecutionDescription } from '@temporalio/client';
import { defaultPayloadConverter, type Payload, type PayloadCodec } from '@temporalio/common';
import { decodeFirstPayload, findPendingActivity } from '../../src/temporal/raw-requests';

// The Temporal server lists pending activities in any order. An earlier activity stays pending until its worker confirms the
// cancellation.
it('returns the details of the latest of several pending activities of a type', async () => {
  const pendingActivities = ['9', '12', '7', '13'].map((activityId) => ({
    activityId,
    activityType: { name: activityId === '13' ? 'getJob' : 'pollJob' },
    heartbeatDetails: { payloads: [defaultPayloadConverter.toPayload(`of ${activityId}`)] },
  }));
  const found = { workflowId: 'w', raw: { pendingActivities } as WorkflowExecutionDescription['raw'] };
  expect((await findPendingActivity(new Client(), found, 'pollJob'))?.details).toBe('of 12');
});

it('decodes the first payload of a raw response with the codecs in reverse order, and gives them the workflow', async () => {
  const calls: unknown[] = [];
  const codec = (name: string): PayloadCodec => ({
    encode: (payloads) => Promise.resolve(payloads),
    decode: (payloads, context) => {
      calls.push([name, context]);
      return Promise.resolve(
        payloads.map(({ data, ...payload }): Payload => {
          const text = `${Buffer.from(data ?? [])
            .toString()
            .slice(0, -1)}${name}"`;
          return { ...payload, data: Buffer.from(text) };
        }),
      );
    },
  });
  const client = new Client({ dataConverter: { payloadCodecs: [codec('1'), codec('2')] }, namespace: 'n' });
  const payloads = ['a', 'b'].map((value) => defaultPayloadConverter.toPayload(value));
  expect(await decodeFirstPayload(client, payloads, 'w')).toBe('a21');
  const context = { type: 'workflow', namespace: 'n', workflowId: 'w' };
  expect(calls).toEqual([
    ['2', context],
    ['1', context],
  ]);
  expect(await decodeFirstPayload(client, [], 'w')).toBeUndefined();
  expect(await decodeFirstPayload(client, null, 'w')).toBeUndefined();
});
