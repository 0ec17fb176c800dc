import { describe, expect, it } from '@jest/globals';
import { batchOfRequests, type CheckedBatch, ProblemList } from '../../../src/client/batch/items';
import { InvalidRequestError } from '../../../src/client/errors';
import { problemText } from '../../../src/core/problem';
import { promptDigest } from '../../../src/temporal/existing-run';
import { MAX_BATCH_ITEMS, requestIdOf } from '../../../src/core/batch';
import type { FollowUpRequest } from '../../../src/core/request';

const one = (fields: object = {}): FollowUpRequest => ({
  projectId: 'p',
  jobId: 'j',
  prompt: 'Hello',
  ...fields,
});

async function problemsOf(requests: Iterable<unknown>, batchId?: string): Promise<readonly string[]> {
  const error: unknown = await batchOfRequests(requests as Iterable<FollowUpRequest>, batchId).catch(
    (thrown: unknown) => thrown,
  );
  return error instanceof InvalidRequestError ? error.problems.map((problem) => problemText(problem)) : [];
}

const keys = ({ items }: CheckedBatch): (string | null)[] => items.map(({ key }) => key);

describe('a batch of requests', () => {
  it('holds each request with the digest of its prompt', async () => {
    const { items } = await batchOfRequests([one({ deadline: '2h' })]);
    expect(items).toEqual([
      {
        key: expect.stringMatching(/^[0-9a-f]{16}$/),
        request: { ...one({ deadline: '2h' }), polling: { initial: '30s' } },
        promptDigest: promptDigest('Hello'),
      },
    ]);
  });

  it('may come from any iterable', async () => {
    // eslint-disable-next-line @typescript-eslint/require-await -- as a database cursor would
    async function* cursor() {
      yield one();
      yield one({ jobId: 'k' });
    }
    expect((await batchOfRequests(cursor())).items).toHaveLength(2);
    expect((await batchOfRequests(new Set([one()]))).items).toHaveLength(1);
  });

  it.each([
    ['30s where nothing is said', undefined, { initial: '30s' }],
    ['what is asked for', { initial: '1s' }, { initial: '1s' }],
    ['the maximum where that is shorter', { maximum: '10s' }, { initial: '10s', maximum: '10s' }],
    [
      '30s below a longer maximum',
      { maximum: '1m', growth: 1 },
      { initial: '30s', growth: 1, maximum: '1m' },
    ],
    ['30s where null stands for nothing', { initial: null }, { initial: '30s' }],
  ])('polls from %s', async (_, polling, expected) => {
    const { items } = await batchOfRequests([one({ polling })]);
    expect(items[0]?.request.polling).toEqual(expected);
  });

  it('tells every problem with the number of its item', async () => {
    expect(
      await problemsOf([one(), one({ prompt: '' }), 'three', one({ deadline: '30', retries: 3 })]),
    ).toEqual([
      expect.stringMatching(/^item 2: prompt: must not be empty/),
      expect.stringMatching(/^item 3: input: must be one JSON object/),
      expect.stringMatching(/^item 4: deadline: "30" needs a unit/),
      expect.stringMatching(/^item 4: "retries": is not a field here/),
    ]);
  });

  it('has the first problems in its message', async () => {
    const requests = Array.from({ length: 23 }, () => one({ jobId: '.' }));
    await expect(batchOfRequests(requests)).rejects.toThrow(
      /^Invalid request: item 1: .*; item 20: [^;]*; … and 3 more\. Nothing was started or changed\.$/,
    );
  });

  it('tells one problem for each item that is possible, and how many more there are', () => {
    const problems = new ProblemList('line');
    for (let line = 1; line <= MAX_BATCH_ITEMS + 2; line += 1) problems.add(line, 'is wrong');
    expect(problems.all().slice(-2)).toEqual([
      { field: `line ${MAX_BATCH_ITEMS}`, text: 'is wrong' },
      { field: 'items', text: '… and 2 more problems' },
    ]);
  });

  it('is refused where it is empty', async () => {
    expect(await problemsOf([])).toEqual(['items: there are no items']);
  });

  it('does not change when its requests do', async () => {
    const request = { ...one(), polling: { growth: 1 } };
    const { items } = await batchOfRequests([request]);
    request.prompt = 'Changed';
    request.polling.growth = 2;
    expect(items[0]?.request).toEqual(one({ polling: { initial: '30s', growth: 1 } }));
  });
});

describe('the name of an item', () => {
  it('is its own, or made of the batch and its key', async () => {
    const { batchId, items } = await batchOfRequests([one({ requestId: 'mine' }), one()], 'night');
    expect(batchId).toBe('night');
    expect(items[0]).toMatchObject({ key: null, request: { requestId: 'mine' } });
    expect(items.map((item) => requestIdOf('night', item))).toEqual([
      'mine',
      expect.stringMatching(/^night-[0-9a-f]{16}$/),
    ]);
  });

  it('is the same wherever in the input it stands, and whatever its options are', async () => {
    const [a, b, c] = [one({ jobId: 'a' }), one({ jobId: 'b' }), one({ jobId: 'c' })] as const;
    const first = await batchOfRequests([a, b, c]);
    const second = await batchOfRequests([c, { ...a, deadline: '2h' }, b]);
    expect(keys(second)).toEqual([keys(first)[2], keys(first)[0], keys(first)[1]]);
  });

  it('differs by project, job, prompt and how often it came, and keeps these apart', async () => {
    const requests = [
      one(),
      one(),
      one({ jobId: 'k' }),
      one({ projectId: 'q' }),
      one({ prompt: 'hello' }),
      one({ projectId: 'p","j', jobId: 'j' }),
      one({ projectId: 'p', jobId: 'j","j' }),
    ];
    const batch = await batchOfRequests(requests);
    expect(new Set(keys(batch)).size).toBe(requests.length);
    expect(keys(await batchOfRequests([one(), one()]))).toEqual(keys(batch).slice(0, 2));
  });

  it('may not be given twice to the same job', async () => {
    const named = (fields: object = {}) => one({ requestId: 'r', ...fields });
    expect(await problemsOf([named(), named({ jobId: 'k' }), named({ projectId: 'q' })])).toEqual([]);
    expect(await problemsOf([one(), named(), one(), named({ prompt: 'Other' })])).toEqual([
      'item 4: requestId: "r" is already used by item 2 for the same job; choose another',
    ]);
  });

  it('may not be the name that the batch makes of another item', async () => {
    const { items } = await batchOfRequests([one()], 'night');
    const requestId = requestIdOf('night', items[0] ?? { key: null, request: one() });
    await expect(batchOfRequests([one(), one({ requestId })], 'night')).rejects.toThrow(
      `item 2: requestId: "${requestId}" is already used by item 1 for the same job; choose another`,
    );
  });

  it('is made of the batch’s own id where the batch is named by its workflow id', async () => {
    const [byId, byWorkflowId] = await Promise.all(
      ['a night', 'follow-up-batch:a%20night'].map((id) => batchOfRequests([one()], id)),
    );
    expect(byWorkflowId).toEqual(byId);
  });

  it('fits into a workflow id, or is asked for', async () => {
    const long = one({ projectId: 'é'.repeat(18), jobId: 'é'.repeat(18) });
    expect(await problemsOf([long])).toEqual([
      expect.stringMatching(/^item 1: requestId: is missing, .* would be 265 bytes long; at most 255/),
    ]);
    expect(await problemsOf([{ ...long, requestId: 'r' }])).toEqual([]);
    // One byte too many: 10 + 1 + 1 of the form, 37 of the name.
    expect(await problemsOf([one({ projectId: 'p'.repeat(103), jobId: 'j'.repeat(103) })])).toEqual([]);
    expect(await problemsOf([one({ projectId: 'p'.repeat(103), jobId: 'j'.repeat(104) })])).toHaveLength(1);
    expect(
      await problemsOf([one({ projectId: 'p'.repeat(103), jobId: 'j'.repeat(103) })], 'b'.repeat(21)),
    ).toHaveLength(1);
  });
});

describe('the default id of a batch', () => {
  const items = [one({ jobId: 'a' }), one({ jobId: 'b', requestId: 'r' }), one({ jobId: 'c' })];
  const of = (requests: FollowUpRequest[]) => batchOfRequests(requests);

  it('is the same for the same items', async () => {
    const [first, second] = [await of(items), await of(structuredClone(items))];
    expect(first.batchId).toMatch(/^[0-9a-f]{20}$/);
    expect(second).toEqual(first);
  });

  it('does not change with order and options, so that nothing is sent again; the digest does', async () => {
    const first = await of(items);
    for (const changed of [items.toReversed(), items.map((item) => ({ ...item, deadline: '2h' as const }))]) {
      const second = await of(changed);
      expect(second.batchId).toBe(first.batchId);
      expect(second.digest).not.toBe(first.digest);
    }
  });

  it.each([
    ['an item more', [...items, one({ jobId: 'a' })]],
    ['an item less', items.slice(1)],
    ['another prompt', items.map((item) => ({ ...item, prompt: 'Other' }))],
    ['another request id', items.map((item) => ({ ...item, requestId: 's' }))],
    [
      'another prompt of the same request id',
      items.with(1, one({ jobId: 'b', requestId: 'r', prompt: 'Other' })),
    ],
    ['another job of the same request id', items.with(1, one({ jobId: 'd', requestId: 'r' }))],
  ])('changes with %s', async (_, changed) => {
    const [first, second] = [await of(items), await of(changed)];
    expect(second.batchId).not.toBe(first.batchId);
    expect(second.digest).not.toBe(first.digest);
  });

  it('is refused where a given one is none', async () => {
    expect(await problemsOf(items, '')).toEqual([expect.stringMatching(/^batchId: must not be empty/)]);
  });
});

describe('what an item has beside its prompt', () => {
  it('is bounded, since a page must fit into a payload', async () => {
    const deadline = `${'0'.repeat(9_000)}24h`;
    expect(await problemsOf([one({ deadline })])).toEqual([
      expect.stringMatching(/^item 1: its fields beside the prompt take 9\d{3} bytes as JSON; at most 8192/),
    ]);
  });
});
