import { expect, it } from '@jest/globals';
import type { DataConverter, Payload } from '@temporalio/common';
import { Environment } from '../../harness/environment';
import { ACCEPTED_BY_READ } from '../../harness/follow-up-under-test';

/**
 * Creates a data converter whose codec fails once for the input of the send and once for its result. A codec with an unavailable key
 * server fails in this way.
 */
function failingOnce(): DataConverter & { readonly failed: string[] } {
  const failed: string[] = [];
  const pass = (payloads: Payload[], text: string) => {
    const hasText = payloads.some(({ data }) => Buffer.from(data ?? []).includes(text));
    if (hasText && !failed.includes(text)) {
      failed.push(text);
      throw new Error(`the codec can't convert ${text}`);
    }
    return Promise.resolve(payloads);
  };
  // The first text is in the result of the send, and the second one is in its input.
  const encode = (payloads: Payload[]) => pass(payloads, '"kind":"posted"');
  const decode = (payloads: Payload[]) => pass(payloads, '"permittedRunId"');
  return { failed, payloadCodecs: [{ encode, decode }] };
}

// Proves W7.
it('sends the message once if the codec fails once for the input of the send and once for its result', async () => {
  const dataConverter = failingOnce();
  const environment = await Environment.open({ skipsTime: true, dataConverter });
  const following = await environment.follow({ turn: { reads: 20 } });
  // The second attempt sends the message. The third attempt finds the recorded permission, and a read of the turn shows the delivery.
  const expected = { status: 'completed', delivery: ACCEPTED_BY_READ, posts: [true] };
  expect(await following.outcomeSummary()).toMatchObject(expected);
  expect(dataConverter.failed).toEqual(['"permittedRunId"', '"kind":"posted"']);
  await environment.close();
});
