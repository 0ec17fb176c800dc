import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { checkBatch } from '../../../src/client/batch/check';
import { InvalidRequestError } from '../../../src/client/errors';
import { problemText } from '../../../src/core/checks';
import { requestIdOf } from '../../../src/core/batch/items';
import type { FollowUpRequest } from '../../../src/core/request';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Hello' };
const one = (fields: object = {}): FollowUpRequest => ({ ...REQUEST, ...fields });

async function problemsOf(requests: Iterable<unknown>, batchId?: string): Promise<readonly string[]> {
  const error: unknown = await checkBatch(requests, { batchId }).catch((thrown: unknown) => thrown);
  return error instanceof InvalidRequestError ? error.problems.map((problem) => problemText(problem)) : [];
}

describe('a batch of requests', () => {
  it('holds each request, which may come from any iterable', async () => {
    // eslint-disable-next-line @typescript-eslint/require-await -- as a database cursor would
    async function* cursor() {
      yield one({ deadline: '2h' });
      yield one({ jobId: 'k' });
    }
    const { items } = await checkBatch(cursor());
    expect(items).toHaveLength(2);
    expect(items[0]?.request).toEqual(one({ deadline: '2h', polling: { initial: '30s' } }));
    expect((await checkBatch(new Set([one()]))).items).toHaveLength(1);
  });

  it.each([7, 'a text', {}, null])('is refused where it is no list: %j', async (requests) => {
    const problem = expect.stringMatching(/^items: must be a list or an iterable of requests, not /);
    expect(await problemsOf(requests as never)).toEqual([problem]);
  });

  it('polls from 30s, or from a shorter maximum', async () => {
    const { items } = await checkBatch([
      one({ polling: { maximum: '10s' } }),
      one({ polling: { maximum: '1m' } }),
    ]);
    const polling = items.map(({ request }) => request.polling);
    expect(polling).toEqual([
      { initial: '10s', maximum: '10s' },
      { initial: '30s', maximum: '1m' },
    ]);
  });

  it('tells every problem with the number of its item, and the first ones in its message', async () => {
    const requests = Array.from({ length: 23 }, () => one({ jobId: '.' }));
    await expect(checkBatch(requests)).rejects.toThrow(/item 1: .*; item 20: [^;]*; … and 3 more\./);
    expect(await problemsOf([])).toEqual(['items: there are no items']);
    expect(
      await problemsOf([one(), one({ prompt: '' }), 'three', one({ deadline: '30', retries: 3 })]),
    ).toEqual([
      expect.stringMatching(/^item 2: prompt: must not be empty/),
      expect.stringMatching(/^item 3: input: must be one JSON object/),
      expect.stringMatching(/^item 4: deadline: "30" needs a unit/),
      expect.stringMatching(/^item 4: "retries": is not a field here/),
    ]);
  });

  it('does not change when its requests do', async () => {
    const request = { ...one(), polling: { growth: 1 } };
    const { items } = await checkBatch([request]);
    request.prompt = 'Changed';
    request.polling.growth = 2;
    expect(items[0]?.request).toEqual(one({ polling: { initial: '30s', growth: 1 } }));
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

describe('the name of an item', () => {
  it('is its own, or made of the batch and its key', async () => {
    const { batchId, items } = await checkBatch([one({ requestId: 'mine' }), one()], { batchId: 'night' });
    expect(batchId).toBe('night');
    expect((await checkBatch([one()], { batchId: 'follow-up-batch:night' })).batchId).toBe('night');
    expect(items[0]).toMatchObject({ key: null, request: { requestId: 'mine' } });
    expect(items.map((item) => requestIdOf('night', item))).toEqual([
      'mine',
      expect.stringMatching(/^night-[0-9a-f]{16}$/),
    ]);
  });
});

describe('the default id of a batch', () => {
  const items = [one({ jobId: 'a' }), one({ jobId: 'b', requestId: 'r' }), one({ jobId: 'c' })];

  it('does not change with order and options, so that nothing is sent again; the digest does', async () => {
    const first = await checkBatch(items);
    for (const changed of [items.toReversed(), items.map((item) => ({ ...item, deadline: '2h' as const }))]) {
      const second = await checkBatch(changed);
      expect(second.batchId).toBe(first.batchId);
      expect(second.digest).not.toBe(first.digest);
    }
  });

  it.each([
    ['an item more', [...items, one({ jobId: 'a' })]],
    ['another request id', items.map((item) => ({ ...item, requestId: 's' }))],
    [
      'another prompt of the same request id',
      items.with(1, one({ jobId: 'b', requestId: 'r', prompt: 'Other' })),
    ],
    ['another job of the same request id', items.with(1, one({ jobId: 'd', requestId: 'r' }))],
  ])('changes with %s', async (_, changed) => {
    const [first, second] = [await checkBatch(items), await checkBatch(changed)];
    expect(second.batchId).not.toBe(first.batchId);
    expect(second.digest).not.toBe(first.digest);
  });
});
