import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { checkBatch } from '../../../src/client/batch/check';
import { checkSchedule } from '../../../src/client/schedules';
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
      yield newRequest({ jobId: 'k', polling: { maximum: '10s' } });
      yield newRequest({ jobId: 'l', deadline: '2h', polling: { maximum: '1m' } });
    }
    const { items } = await checkBatch(cursor());
    request.prompt = 'Changed';
    request.polling.growth = 2;
    expect(items.map((item) => item.request)).toEqual([
      newRequest({ polling: { initial: '30s', growth: 1 } }),
      newRequest({ jobId: 'k', polling: { initial: '10s', maximum: '10s' } }),
      newRequest({ jobId: 'l', deadline: '2h', polling: { initial: '30s', maximum: '1m' } }),
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

describe('items with the same project, job and prompt', () => {
  const repeated = [
    newRequest(),
    newRequest({ prompt: 'Other' }),
    newRequest({ deadline: '2h' }),
    newRequest(),
  ];
  const reason =
    'both have the same project, job and prompt, so the agent would receive the message twice; remove one';

  // Proves B14.
  it('are rejected with the numbers of both items and the ways to accept them', async () => {
    const problem = (item: number) => `item ${item} repeats item 1: prompt: ${reason}`;
    const error: unknown = await checkBatch(repeated).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain(problem(3));
    expect(String(error)).toContain(problem(4));
    expect(String(error)).toContain(
      'give each of them its own request ID, or set allowDuplicates (in the CLI: --allow-duplicates)',
    );
    expect(error).toMatchObject({
      problems: [
        { item: 3, earlierItem: 1, field: 'prompt' },
        { item: 4, earlierItem: 1, field: 'prompt' },
      ],
    });
  });

  it('are accepted with allowDuplicates or with their own request IDs, and are then several messages', async () => {
    const { items } = await checkBatch(repeated, { allowDuplicates: true });
    expect(new Set(items.map(({ key }) => key)).size).toBe(4);
    const named = [newRequest(), newRequest({ requestId: 'a' }), newRequest({ requestId: 'b' })];
    expect((await checkBatch(named)).items).toHaveLength(3);
    const wrong = checkBatch(repeated, { allowDuplicates: 'yes' as never });
    await expect(wrong).rejects.toThrow('allowDuplicates: must be true or false; it is "yes"');
  });

  it('of a schedule are rejected too, and the message names no request IDs, which a schedule rejects', async () => {
    const rejected = expect.stringMatching(
      /^Invalid request: item 2 repeats item 1: .*, change one of them, or set allowDuplicates/,
    );
    const requests = [newRequest(), newRequest()];
    await expect(checkSchedule('nightly', requests)).rejects.toMatchObject({ message: rejected });
    expect(await checkSchedule('nightly', requests, { allowDuplicates: true })).toHaveLength(2);
  });

  it('are found without a copy of their prompts', async () => {
    // Each prompt is another string, because equal prompts share one string.
    const prompts = Array.from({ length: 100 }, (_, number) => `${number} `.repeat(50_000));
    const requests = (JSON.parse(JSON.stringify(prompts)) as string[]).map((prompt) =>
      newRequest({ prompt }),
    );
    await checkBatch(requests.slice(0, 1));
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    const { items } = await checkBatch(requests);
    collectGarbage();
    expect(items).toHaveLength(100);
    // The prompts have 15 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(2 * 1_024 * 1_024);
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
  await checkBatch(file(), { allowDuplicates: true });
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
    ['one more item', false, [...items, newRequest({ jobId: 'd' })]],
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

describe('a schedule ID', () => {
  it('can have 79 characters, because the time of a firing is added to it', async () => {
    expect(await checkSchedule('x'.repeat(79), [newRequest()])).toHaveLength(1);
  });

  it.each([
    ['x'.repeat(80), 'must have at most 79 characters; it has 80'],
    [
      '🙂'.repeat(49),
      'is too long: a workflow ID that contains this ID would have 257 bytes, and the maximum is 255',
    ],
    ['night/1', 'must not have a slash'],
  ])('can’t be %j: %s', async (scheduleId, problem) => {
    await expect(checkSchedule(scheduleId, [newRequest()])).rejects.toThrow(`scheduleId: ${problem}`);
  });
});
