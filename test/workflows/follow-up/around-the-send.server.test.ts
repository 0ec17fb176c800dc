import { expect, it } from '@jest/globals';
import type { DataConverter, Payload } from '@temporalio/common';
import { Environment } from '../../harness/environment';
import { ACCEPTED_BY_READ } from '../../harness/follow-up-under-test';

/** Fails each time that something in a payload is passed for the first time, as a codec whose key server is away. */
function failingOnce(): DataConverter & { readonly failed: string[] } {
  const failed: string[] = [];
  const pass = (payloads: Payload[], word: string) => {
    const passed = payloads.some(({ data }) => Buffer.from(data ?? []).includes(word));
    if (passed && !failed.includes(word)) {
      failed.push(word);
      throw new Error(`the codec can't pass ${word}`);
    }
    return Promise.resolve(payloads);
  };
  // The result of the send, and its input.
  const encode = (payloads: Payload[]) => pass(payloads, '"kind":"posted"');
  const decode = (payloads: Payload[]) => pass(payloads, '"permittedRunId"');
  return { failed, payloadCodecs: [{ encode, decode }] };
}

// Proves W7.
it('a codec that fails at the input of the send, and then at its result, delays it: nothing is sent twice', async () => {
  const dataConverter = failingOnce();
  const environment = await Environment.open({ skipsTime: true, dataConverter });
  const following = await environment.follow({ turn: { reads: 20 } });
  // The second attempt has sent; the third one finds what it has recorded, and the running turn proves the delivery.
  const ending = { status: 'completed', delivery: ACCEPTED_BY_READ, posts: [true] };
  expect(await following.outcomeSummary()).toMatchObject(ending);
  expect(dataConverter.failed).toEqual(['"permittedRunId"', '"kind":"posted"']);
  await environment.close();
});
