import { describe, expect, it } from '@jest/globals';
import type { DataConverter, Payload } from '@temporalio/common';
import { Environment } from '../../harness/environment';
import { eventually } from '../../../tools/lib/eventually';
import {
  ENDLESS_TURN,
  type FollowUpUnderTest,
  NOT_SENT_DELIVERY,
  UNKNOWN_DELIVERY,
} from '../../harness/follow-up-under-test';
import { temporal } from '../../harness/temporal';
import { TemporalGate } from '../../harness/temporal-gate';

/** A codec that fails for payloads with a text, so many times. */
function failingFor(text: string, side: 'encode' | 'decode', times = Infinity): DataConverter {
  let left = times;
  const pass = (payloads: Payload[]) => Promise.resolve(payloads);
  const fail = (payloads: Payload[]) => {
    if (left === 0 || !payloads.some(({ data }) => Buffer.from(data ?? []).includes(text)))
      return pass(payloads);
    left -= 1;
    throw new Error(`the codec can't ${side} ${text}`);
  };
  return { payloadCodecs: [{ encode: pass, decode: pass, [side]: fail }] };
}

/** Waits until the first attempt of the send has failed. */
async function untilBackOff({ handle }: FollowUpUnderTest): Promise<void> {
  const pending = await eventually('the send is in its back-off', async () => {
    const { raw } = await handle.describe();
    return raw.pendingActivities?.find(({ attempt }) => Number(attempt) === 2);
  });
  expect(pending.activityType?.name).toBe('sendMessage');
}

describe('a follow-up that is cancelled while its send is in its back-off', () => {
  // Proves P3.
  it.concurrent('reports an unknown delivery if an attempt has recorded its permission', async () => {
    // The attempt makes its POST, and can't report it.
    const dataConverter = failingFor('"kind":"posted"', 'encode');
    const environment = await Environment.open({ dataConverter });
    const following = await environment.follow(ENDLESS_TURN);
    await untilBackOff(following);
    await following.handle.cancel();
    expect((await following.cancelledReceipt()).delivery).toEqual(UNKNOWN_DELIVERY);
    expect(following.processedFlags()).toEqual([true]);
    await environment.close();
  });

  // Proves P3.
  it.concurrent(
    'starts no other attempt between the question for the record and the cancellation',
    async () => {
      const gate = await TemporalGate.open(temporal().address);
      // The second attempt of each send could read its input, and would send.
      const dataConverter = failingFor('"permittedRunId"', 'decode', 2);
      const environment = await Environment.open({ dataConverter, address: gate.address });
      const following = await environment.follow(ENDLESS_TURN);
      await untilBackOff(following);
      // The workflow has the record, and its cancellation of the send is on its way.
      const held = gate.hold('RespondWorkflowTaskCompleted', 'call', 'stopSend');
      await following.handle.cancel();
      await held.waitForCall();
      // The second attempt of a later send comes after the back-off of the earlier one.
      const later = await environment.follow(ENDLESS_TURN);
      await later.waitForRequest({ operation: 'message' });
      held.release();
      // Nothing was sent, and the receipt says so.
      expect((await following.cancelledReceipt()).delivery).toEqual(NOT_SENT_DELIVERY);
      expect([following.readCount(), following.posts()]).toEqual([0, []]);
      await later.handle.terminate();
      await environment.close();
      await gate.close();
    },
  );
});
