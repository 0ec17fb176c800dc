import { describe, expect, it } from '@jest/globals';
import type { DataConverter, Payload } from '@temporalio/common';
import { Environment } from '../../harness/environment';
import { describePendingActivity, pauseActivity, STOP_SEND_REASON } from '../../../src/temporal/raw-requests';
import { eventually } from '../../../tools/lib/eventually';
import {
  ENDLESS_TURN,
  type FollowUpUnderTest,
  NOT_SENT_DELIVERY,
  progressFromWorker,
  UNKNOWN_DELIVERY,
} from '../../harness/follow-up-under-test';
import { Operator } from '../../harness/operator';
import { POLL_EVERY_SECOND } from '../../harness/pending-poll';
import { temporal } from '../../harness/temporal';
import { TemporalGate } from '../../harness/temporal-gate';

/** Creates a data converter whose codec fails for payloads with a text. @param times the number of failures */
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
async function waitForBackoff({ handle }: FollowUpUnderTest): Promise<void> {
  const pending = await eventually('the send waits for its second attempt', async () => {
    const { raw } = await handle.describe();
    return raw.pendingActivities?.find(({ attempt }) => Number(attempt) === 2);
  });
  expect(pending.activityType?.name).toBe('sendMessage');
}

describe('a follow-up that is cancelled between two attempts of its send', () => {
  // Proves P3.
  it.concurrent('reports an unknown delivery if an attempt has recorded its send permission', async () => {
    // The attempt makes its POST, but the codec prevents the report of the outcome.
    const dataConverter = failingFor('"kind":"posted"', 'encode');
    const environment = await Environment.open({ dataConverter });
    const following = await environment.follow(ENDLESS_TURN);
    await waitForBackoff(following);
    await following.handle.cancel();
    expect((await following.cancelledReceipt()).delivery).toEqual(UNKNOWN_DELIVERY);
    expect(following.processedFlags()).toEqual([true]);
    await environment.close();
  });

  // Proves P3.
  it.concurrent(
    'starts no further attempt between the request for the heartbeat details and the cancellation of the send',
    async () => {
      const gate = await TemporalGate.open(temporal().address);
      // The codec fails for the first attempt of each send only, so that a second attempt would send the message.
      const dataConverter = failingFor('"permittedRunId"', 'decode', 2);
      const environment = await Environment.open({ dataConverter, address: gate.address });
      const following = await environment.follow(ENDLESS_TURN);
      await waitForBackoff(following);
      // The workflow has the heartbeat details. The gate holds the command that cancels the send.
      const held = gate.hold('RespondWorkflowTaskCompleted', 'call', 'stopSend');
      await following.handle.cancel();
      await held.waitForCall();
      // When the second attempt of a later send has started, the wait of the earlier send is over too.
      const later = await environment.follow(ENDLESS_TURN);
      await later.waitForRequest({ operation: 'message' });
      held.release();
      expect((await following.cancelledReceipt()).delivery).toEqual(NOT_SENT_DELIVERY);
      expect([following.readCount(), following.posts()]).toEqual([0, []]);
      await later.handle.terminate();
      await environment.close();
      await gate.close();
    },
  );
});

it('a follow-up whose deadline passes names the failure of the latest attempt of its send', async () => {
  const dataConverter = failingFor('"permittedRunId"', 'decode');
  const environment = await Environment.open({ dataConverter });
  // The first attempt fails in milliseconds, also on a busy machine before this deadline.
  const following = await environment.follow(ENDLESS_TURN, { deadline: '10s', maxStaleness: '0s' });
  const { type, message } = await following.failure();
  expect(type).toBe('DeadlineExceeded');
  expect(message).toMatch(/the latest attempt of the send failed \(.*the codec can't decode/);
  await environment.close();
});

it.each([
  ['sendMessage', '"permittedRunId"'],
  ['pollJob', '"decidesAt"'],
])('the progress names the failure or the pause of a pending %s', async (type, field) => {
  const environment = await Environment.open({ dataConverter: failingFor(field, 'decode') });
  const following = await environment.follow(ENDLESS_TURN, { polling: POLL_EVERY_SECOND });
  const { workflowId, firstExecutionRunId: runId } = following.handle;
  const lastResponse = async () =>
    (await progressFromWorker(environment.followUps.getHandle(workflowId))).lastResponse ?? '';
  const changed = (from: string) =>
    eventually('the progress has another response', lastResponse, { until: (text) => text !== from });
  const failure = await eventually('the activity has failed', lastResponse, {
    until: (text) => text.includes('failed'),
  });
  const pattern = `^the activity ${type} failed and is retried: .*the codec can't decode`;
  expect(failure).toMatch(new RegExp(pattern));
  const operator = new Operator(environment.client);
  await operator.pause(workflowId, type);
  const advice = 'resume it with `temporal activity unpause`';
  expect(await changed(failure)).toBe(`the activity ${type} is paused; ${advice}`);
  // The follow-up itself pauses a send that it stops. The progress then does not advise to resume the send.
  await operator.unpause(workflowId, type);
  const run = { workflowId, runId };
  const pending = await describePendingActivity(environment.client, run, type);
  await pauseActivity(environment.client, run, pending?.activityId ?? '', STOP_SEND_REASON);
  expect(await lastResponse()).toBe(STOP_SEND_REASON);
  await following.handle.terminate();
  await environment.close();
});
