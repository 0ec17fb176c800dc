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

/** A file of many or few jobs, in any order, some of whose messages are the same or have names of their own. */
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

describe('the order of the start', () => {
  it('has the items of a job one after the other, as in the file, and the jobs of the projects by turns', () => {
    fc.assert(
      fc.property(files, (file) => {
        const items = toBatchItems(file);
        const ordered = sortByStartOrder(items);
        const jobs = [...new Set(ordered.map(jobOf))];
        expect(ordered).toHaveLength(items.length);
        expect(ordered).toEqual(jobs.flatMap((job) => items.filter((item) => jobOf(item) === job)));
        const projects = jobs.map((job) => job.charAt(0));
        const turns = projects.map(
          (own, job) => projects.slice(0, job).filter((each) => each === own).length,
        );
        expect(turns).toEqual(turns.toSorted());
      }),
    );
  });
});

// test/client/batch/check.test.ts has what they do not depend on.
it('the keys of items differ by project, job, prompt and how often it came, and keep these apart', () => {
  const others = [{}, {}, { jobId: 'k' }, { projectId: 'q' }, { prompt: 'rebase.' }];
  const confusable = [{ projectId: 'p","j', jobId: 'j' }, { jobId: 'j","j' }];
  const requests = [...others, ...confusable].map(request);
  expect(new Set(toBatchItems(requests).map(({ key }) => key)).size).toBe(requests.length);
});

describe('the chunks of a batch', () => {
  const CHUNK_BYTES = 512 * 1_024;

  it('have every item in its order, and as many as fit', () => {
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

  it('have the largest item there can be by itself, below the 2 MiB of a payload', () => {
    // 256 KiB of a character whose JSON is six bytes for one.
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

describe('the items of any client', () => {
  it('are taken where they are requests, and each has a name of its own in its job', () => {
    const mine = { requestId: 'mine' };
    const [named, ofAnother] = [request(mine), request({ ...mine, jobId: 'k' })];
    expect(itemProblems([request(), request(), request({ requestId: null }), named, ofAnother])).toEqual([]);
    expect(itemProblems([named, request({ ...mine, prompt: 'Another.' })])).toHaveLength(2);
  });

  it('are refused where one has no room for the name that the batch gives it', () => {
    const long = request({ projectId: 'p'.repeat(110), jobId: 'j'.repeat(110) });
    expect(itemProblems([long])[0]).toMatch(/^item 1: requestId: .*256 bytes/);
  });

  it('are refused where two are the same follow-up, and still read where they are nothing', () => {
    const [{ key } = { key: '' }] = toBatchItems([request()]);
    const named = request({ requestId: `nightly-${key ?? ''}` });
    const words = `requestId: "nightly-${key ?? ''}" is the request ID of 2 items for the same job; set a different ID for each item`;
    expect(itemProblems([request(), request(), named])).toEqual([`item 1: ${words}`, `item 3: ${words}`]);
    expect(toBatchItems([null] as never)).toHaveLength(1);
  });
});

describe('a batch id', () => {
  it('may be of 100 characters that leave room in a workflow id', () => {
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
  ])('is not %j', (batchId, problem) => {
    expect(batchIdProblem(batchId)).toContain(problem);
  });
});
