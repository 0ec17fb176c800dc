import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { checkBatch } from '../../../src/client/batch/check';
import { toItemRequestId } from '../../../src/batch/items';
import type { FollowUpRequest } from '../../../src/contract/request';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello' };
const one = (fields: object = {}): FollowUpRequest => ({ ...REQUEST, ...fields });

describe('a batch of requests', () => {
  it('holds each request as it was, from any iterable, and polls from 30s or from a shorter maximum', async () => {
    const request = { ...one(), polling: { growth: 1 } };
    // eslint-disable-next-line @typescript-eslint/require-await -- as a database cursor would
    async function* cursor() {
      yield request;
      yield one({ polling: { maximum: '10s' } });
      yield one({ deadline: '2h', polling: { maximum: '1m' } });
    }
    const { items } = await checkBatch(cursor());
    request.prompt = 'Changed';
    request.polling.growth = 2;
    expect(items.map((item) => item.request)).toEqual([
      one({ polling: { initial: '30s', growth: 1 } }),
      one({ polling: { initial: '10s', maximum: '10s' } }),
      one({ deadline: '2h', polling: { initial: '30s', maximum: '1m' } }),
    ]);
    expect((await checkBatch(new Set([one()]))).items).toHaveLength(1);
  });

  it.each([7, 'a text', {}, null])('is refused where it is no list: %j', async (requests) => {
    const problem = 'items: must be a list or an iterable of requests, not ';
    await expect(checkBatch(requests as never)).rejects.toThrow(problem);
  });

  it('tells every problem with the number of its item, and the first ones in its message', async () => {
    const requests = Array.from({ length: 23 }, () => one({ jobId: '.' }));
    await expect(checkBatch(requests)).rejects.toThrow(/item 1: .*; item 20: [^;]*; … and 3 more\./);
    await expect(checkBatch([])).rejects.toThrow('items: there are no items');
    const wrong = [one(), one({ prompt: '' }), 'three', one({ deadline: '30', retries: 3 })];
    const problems = [
      ...['Invalid request: item 2: prompt: must not be empty', 'item 3: input: must be one JSON object'],
      ...['item 4: deadline: "30" needs a unit', 'item 4: "retries": is not a valid field'],
    ];
    await expect(checkBatch(wrong)).rejects.toThrow(new RegExp(problems.join('[^;]*; ')));
  });
});

it('a message that many requests share is held once while they are read, as from a file', async () => {
  const line = JSON.stringify(one({ prompt: 'x'.repeat(256 * 1_024) }));
  const bytes: number[] = [];
  function* file() {
    for (let item = 0; item <= 40; item += 1) {
      yield JSON.parse(line) as FollowUpRequest;
      if (item % 40 === 0) {
        collectGarbage();
        bytes.push(process.memoryUsage().heapUsed);
      }
    }
  }
  await checkBatch(file());
  // Each by itself they have ten MiB.
  const [first = 0, last = Infinity] = bytes;
  expect(last - first).toBeLessThan(2 * 1_024 * 1_024);
});

it('the name of an item is its own, or made of the batch and its key', async () => {
  const { batchId, items } = await checkBatch([one({ requestId: 'mine' }), one()], { batchId: 'night' });
  expect(batchId).toBe('night');
  expect((await checkBatch([one()], { batchId: 'follow-up-batch:night' })).batchId).toBe('night');
  expect(items[0]).toMatchObject({ key: null, request: { requestId: 'mine' } });
  expect(items.map((item) => toItemRequestId('night', item))).toEqual([
    'mine',
    expect.stringMatching(/^night-[0-9a-f]{16}$/),
  ]);
});

describe('the default id of a batch', () => {
  const items = [one({ jobId: 'a' }), one({ jobId: 'b', requestId: 'r' }), one({ jobId: 'c' })];

  it.each<[string, boolean, readonly FollowUpRequest[]]>([
    ['another order', true, items.toReversed()],
    ['other options', true, items.map((item) => ({ ...item, deadline: '2h' }))],
    ['an item more', false, [...items, one({ jobId: 'a' })]],
    ['another request id', false, items.map((item) => ({ ...item, requestId: 's' }))],
    ['another prompt of it', false, items.with(1, one({ jobId: 'b', requestId: 'r', prompt: 'Other' }))],
    ['another job of it', false, items.with(1, one({ jobId: 'd', requestId: 'r' }))],
  ])('stays with %s: %j, so that nothing is sent again; the digest never does', async (_, same, changed) => {
    const [first, second] = [await checkBatch(items), await checkBatch(changed)];
    expect(second.batchId === first.batchId).toBe(same);
    expect(second.digest).not.toBe(first.digest);
  });
});
