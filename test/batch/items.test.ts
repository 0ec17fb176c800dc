import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  batchIdProblem,
  type BatchItem,
  checkItems,
  cutChunks,
  sortByStartOrder,
  toBatchItems,
  MAX_CHUNKS,
} from '../../src/batch/items';
import { problemText } from '../../src/contract/checks';
import { chunkWorkflowId } from '../../src/contract/ids';
import type { FollowUpRequest } from '../../src/contract/request';
import {
  jsonByteLength,
  MAX_PROMPT_BYTES,
  MAX_WORKFLOW_ID_BYTES,
  utf8ByteLength,
} from '../../src/contract/text';

fc.configureGlobal({ seed: 1 });

function request(fields: object = {}): FollowUpRequest {
  return { projectId: 'p', jobId: 'j', prompt: 'Rebase.', ...fields };
}

const jobOf = ({ request: { projectId, jobId } }: BatchItem) => `${projectId}/${jobId}`;

/** The items of a file in any order, for up to 15 jobs. Some items have the same message or a request ID of their own. */
const files = fc.array(
  fc
    .record({
      projectId: fc.constantFrom('p', 'q', 'r'),
      jobId: fc.constantFrom('1', '2', '3', '4', '5'),
      prompt: fc.constantFrom('Rebase.', 'Fix.'),
      requestId: fc.constantFrom(undefined, undefined, 'mine'),
    })
    .map(request),
);

describe('the start order', () => {
  it('has the items of a job one after another in file order, and alternates between the projects', () => {
    fc.assert(
      fc.property(files, (file) => {
        const items = toBatchItems(file);
        const ordered = sortByStartOrder(items);
        const jobs = [...new Set(ordered.map(jobOf))];
        expect(ordered).toHaveLength(items.length);
        expect(ordered).toEqual(jobs.flatMap((job) => items.filter((item) => jobOf(item) === job)));
        const projects = jobs.map((job) => job.charAt(0));
        const turns = projects.map(
          (project, job) => projects.slice(0, job).filter((each) => each === project).length,
        );
        expect(turns).toEqual(turns.toSorted());
      }),
    );
  });

  it('treats two spellings of one UUID as one job', () => {
    const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e';
    const file = [request({ jobId: uuid }), request(), request({ jobId: uuid.toUpperCase() })];
    const repeats: number[][] = [];
    const items = toBatchItems(file, (...repeat) => repeats.push(repeat));
    expect(repeats).toEqual([[2, 0]]);
    expect(sortByStartOrder(items).map(({ request: { jobId } }) => jobId)).toEqual([
      uuid,
      uuid.toUpperCase(),
      'j',
    ]);
  });
});

// test/client/batch/check.test.ts checks that the default batch ID does not depend on the order of the items or on other options.
it('item keys differ if the project, the job, the prompt or the occurrence number differs', () => {
  const distinct = [{}, {}, { jobId: 'k' }, { projectId: 'q' }, { prompt: 'rebase.' }];
  const confusable = [{ projectId: 'p","j', jobId: 'j' }, { jobId: 'j","j' }];
  const requests = [...distinct, ...confusable].map(request);
  expect(new Set(toBatchItems(requests).map(({ key }) => key)).size).toBe(requests.length);
});

describe('the chunks of a batch', () => {
  const CHUNK_BYTES = 512 * 1_024;

  it('have all items in order, and as many items per chunk as fit', () => {
    const prompt = fc.tuple(fc.constantFrom('x', 'é', '\u0001'), fc.integer({ min: 1, max: 90_000 }));
    const prompts = fc.array(prompt, { maxLength: 12 });
    fc.assert(
      fc.property(prompts, (all) => {
        const items = toBatchItems(
          all.map(([character, times]) => request({ prompt: character.repeat(times) })),
        );
        const firsts = cutChunks(items);
        expect(firsts[0] ?? 0).toBe(0);
        for (const [chunk, first] of firsts.entries()) {
          const next = firsts[chunk + 1] ?? items.length;
          expect(next).toBeGreaterThan(first);
          const bytes = jsonByteLength(items.slice(first, next));
          expect(next === first + 1 || bytes <= CHUNK_BYTES + 1).toBe(true);
          const isFull = jsonByteLength(items.slice(first, next + 1)) > CHUNK_BYTES;
          expect(next === items.length || isFull).toBe(true);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('have an item of the maximum size in a chunk of its own, below the payload limit of 2 MiB', () => {
    // The prompt has 256 KiB of a character that takes six bytes in JSON.
    const items = toBatchItems([
      request(),
      request({ prompt: '\u0001'.repeat(MAX_PROMPT_BYTES) }),
      request(),
    ]);
    expect(cutChunks(items)).toEqual([0, 1, 2]);
    expect(jsonByteLength(items[1])).toBeLessThan(2 * 1_024 * 1_024 - 64 * 1_024);
  });
});

function itemProblems(requests: readonly unknown[]): string[] {
  return checkItems(requests, 'nightly').problems.map((problem) => problemText(problem));
}

describe('checkItems', () => {
  it('accepts requests, and rejects two items for one job with the same request ID', () => {
    const mine = { requestId: 'mine' };
    const [named, namedForOtherJob] = [request(mine), request({ ...mine, jobId: 'k' })];
    expect(
      itemProblems([request(), request(), request({ requestId: null }), named, namedForOtherJob]),
    ).toEqual([]);
    expect(itemProblems([named, request({ ...mine, prompt: 'Another.' })])).toHaveLength(2);
  });

  it('rejects an item whose workflow ID would be too long with the request ID that the batch generates', () => {
    const long = request({ projectId: 'p'.repeat(110), jobId: 'j'.repeat(110) });
    expect(itemProblems([long])[0]).toMatch(/^item 1: requestId: .*256 bytes/);
  });

  it('rejects a request ID that equals the generated request ID of another item', () => {
    const [{ key } = { key: '' }] = toBatchItems([request()]);
    const named = request({ requestId: `nightly-${key ?? ''}` });
    const problem = `requestId: "nightly-${key ?? ''}" is the request ID of 2 items for the same job; set a different ID for each item`;
    expect(itemProblems([request(), request(), named])).toEqual([`item 1: ${problem}`, `item 3: ${problem}`]);
  });

  it('toBatchItems accepts any value, because the input of a rejected batch can have any values', () => {
    expect(toBatchItems([null] as never)).toHaveLength(1);
  });
});

describe('a batch ID', () => {
  it('can have 100 characters, with which the workflow IDs of its chunks are not too long', () => {
    for (const batchId of ['x'.repeat(100), 'nightly-2026-01-31T00:00:00Z', 'é'.repeat(100), '🙂']) {
      expect(batchIdProblem(batchId)).toBeUndefined();
      const longest = chunkWorkflowId(batchId, 'f'.repeat(64), MAX_CHUNKS);
      expect(utf8ByteLength(longest)).toBeLessThanOrEqual(MAX_WORKFLOW_ID_BYTES);
    }
  });

  it.each([
    [7, 'must be a string, not of type number'],
    ['x'.repeat(101), 'at most 100 characters; it has 101'],
    ['🙂'.repeat(54), 'would have 256 bytes, and the maximum is 255'],
    ['night/1', 'must not have a slash'],
  ])('can’t be %j: %s', (batchId, problem) => {
    expect(batchIdProblem(batchId)).toContain(problem);
  });
});
