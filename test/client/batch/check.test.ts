import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { checkBatch } from '../../../src/client/batch/check';
import { toItemRequestId } from '../../../src/batch/items';
import type { FollowUpRequest } from '../../../src/contract/request';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello' };
const newRequest = (fields: object = {}): FollowUpRequest => ({ ...REQUEST, ...fields });

describe('checkBatch', () => {
  it('copies each request of any iterable, and sets polling.initial to 30s or to a shorter polling.maximum', async () => {
    const request = { ...newRequest(), polling: { growth: 1 } };
    // eslint-disable-next-line @typescript-eslint/require-await -- a database cursor is asynchronous too
    async function* cursor() {
      yield request;
      yield newRequest({ polling: { maximum: '10s' } });
      yield newRequest({ deadline: '2h', polling: { maximum: '1m' } });
    }
    const { items } = await checkBatch(cursor());
    request.prompt = 'Changed';
    request.polling.growth = 2;
    expect(items.map((item) => item.request)).toEqual([
      newRequest({ polling: { initial: '30s', growth: 1 } }),
      newRequest({ polling: { initial: '10s', maximum: '10s' } }),
      newRequest({ deadline: '2h', polling: { initial: '30s', maximum: '1m' } }),
    ]);
    expect((await checkBatch(new Set([newRequest()]))).items).toHaveLength(1);
  });

  it.each([7, 'a text', {}, null])('rejects items that are not iterable: %j', async (requests) => {
    const problem = 'items: must be an array or an iterable of requests, not ';
    await expect(checkBatch(requests as never)).rejects.toThrow(problem);
  });

  it('reports every problem with its item number, and the first 20 problems in the message', async () => {
    const requests = Array.from({ length: 23 }, () => newRequest({ jobId: '.' }));
    await expect(checkBatch(requests)).rejects.toThrow(/item 1: .*; item 20: [^;]*; … and 3 more\./);
    await expect(checkBatch([])).rejects.toThrow('items: must have at least one item');
    const wrong = [
      newRequest(),
      newRequest({ prompt: '' }),
      'three',
      newRequest({ deadline: '30', retries: 3 }),
    ];
    const problems = [
      ...['Invalid request: item 2: prompt: must not be empty', 'item 3: input: must be one JSON object'],
      ...['item 4: deadline: "30" needs a unit', 'item 4: "retries": is not a valid field'],
    ];
    await expect(checkBatch(wrong)).rejects.toThrow(new RegExp(problems.join('[^;]*; ')));
  });
});

it('checkBatch holds a prompt only once in memory if many requests share the prompt', async () => {
  const line = JSON.stringify(newRequest({ prompt: 'x'.repeat(256 * 1_024) }));
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
  // Forty separate copies of the prompt would need ten MiB.
  const [first = 0, last = Infinity] = bytes;
  expect(last - first).toBeLessThan(2 * 1_024 * 1_024);
});

it('an item has its own request ID, or a request ID that is made of the batch ID and the item key', async () => {
  const { batchId, items } = await checkBatch([newRequest({ requestId: 'mine' }), newRequest()], {
    batchId: 'night',
  });
  expect(batchId).toBe('night');
  expect((await checkBatch([newRequest()], { batchId: 'follow-up-batch:night' })).batchId).toBe('night');
  expect(items[0]).toMatchObject({ key: null, request: { requestId: 'mine' } });
  expect(items.map((item) => toItemRequestId('night', item))).toEqual([
    'mine',
    expect.stringMatching(/^night-[0-9a-f]{16}$/),
  ]);
});

describe('the default batch ID', () => {
  const items = [
    newRequest({ jobId: 'a' }),
    newRequest({ jobId: 'b', requestId: 'r' }),
    newRequest({ jobId: 'c' }),
  ];

  it.each<[string, boolean, readonly FollowUpRequest[]]>([
    ['the same items in another order', true, items.toReversed()],
    ['other options', true, items.map((item) => ({ ...item, deadline: '2h' }))],
    ['one more item', false, [...items, newRequest({ jobId: 'a' })]],
    ['another request ID', false, items.map((item) => ({ ...item, requestId: 's' }))],
    [
      'another prompt with the same request ID',
      false,
      items.with(1, newRequest({ jobId: 'b', requestId: 'r', prompt: 'Other' })),
    ],
    [
      'another job with the same request ID',
      false,
      items.with(1, newRequest({ jobId: 'd', requestId: 'r' })),
    ],
  ])('is unchanged for %s: %j; the digest always changes', async (_, same, changed) => {
    const [first, second] = [await checkBatch(items), await checkBatch(changed)];
    expect(second.batchId === first.batchId).toBe(same);
    expect(second.digest).not.toBe(first.digest);
  });
});
