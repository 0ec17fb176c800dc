import { describe, expect, it } from '@jest/globals';
import { MAX_PROMPT_BYTES } from '../../../src/core/text';
import { problemsOf, read, requestsOf } from './reading';

const line = (fields: object = {}): string =>
  JSON.stringify({ project: 'p', job: 'j', prompt: 'm', ...fields }) + '\n';

describe('a batch as JSON Lines', () => {
  it.each([1, 3, 65_536])(
    'has an item a line; a byte order mark, CRLF and blank lines are fine, read in pieces of %i bytes',
    async (pieceBytes) => {
      const text = `\ufeff\r\n${line({ prompt: 'ü 🙂' }).trim()}\r\n\r\n  \n${line({ job: 'k' }).trim()}`;
      expect(await requestsOf(text, {}, pieceBytes)).toEqual([
        { projectId: 'p', jobId: 'j', prompt: 'ü 🙂' },
        { projectId: 'p', jobId: 'k', prompt: 'm' },
      ]);
    },
  );

  it("takes the names of columns and the request's own, and null for nothing given", async () => {
    const request = {
      projectId: 'p',
      jobId: 'j',
      prompt: 'm',
      requestId: 'r',
      whenActive: 'wait',
      polling: { initial: '1s', growth: 0.5, timerPolls: 3 },
    };
    expect(await requestsOf(JSON.stringify(request))).toEqual([request]);
    const columns = { request_id: 'r', when_active: 'wait', polling_initial: '1s', deadline: null };
    expect(await requestsOf(line({ ...columns, polling: { growth: 0.5, timerPolls: 3 } }))).toEqual([
      request,
    ]);
  });

  it('tells what is wrong with each line, in the names that the line uses', async () => {
    const text = [
      '{"project":"p"',
      '[1]',
      '"text"',
      line({ deadlin: '2h', polling: { intial: '1s' } }).trim(),
      line({ projectId: 'q' }).trim(),
      line({ polling_initial: '1s', polling: { initial: '1s' } }).trim(),
      line({ polling: '1s', polling_growth: '0.5', prompt: '' }).trim(),
      '{"projectId":".","jobId":"j","prompt":"m"}',
    ].join('\n');
    expect(await problemsOf(text)).toEqual([
      expect.stringMatching(/^line 1: is not JSON \(.+\); JSON Lines has one whole object a line$/),
      'line 2: must be one JSON object, not an array; JSON Lines has one object a line',
      'line 3: must be one JSON object, not of type string; JSON Lines has one object a line',
      expect.stringMatching(/^line 4: "deadlin" is not a field here; the fields are project, job, /),
      expect.stringMatching(/^line 4: "polling.intial" is not a field here; the fields are /),
      'line 5: project is given twice; give it once',
      'line 6: polling_initial is given twice; give it once',
      'line 7: polling: must be an object, not of type string',
      expect.stringMatching(/^line 7: prompt: must not be empty/),
      'line 7: polling_growth: must be a number from 0 to 10; it is "0.5"',
      expect.stringMatching(/^line 8: project: must not be "\."/),
    ]);
  });

  it('has each field once: JSON itself would take the last one', async () => {
    expect(
      await problemsOf('{"job":"j","job":"k","prompt":"m"}\n{"polling":{"growth":1,"growth":2}}'),
    ).toEqual([
      'line 1: is not JSON ("job" is given twice); JSON Lines has one whole object a line',
      'line 2: is not JSON ("growth" is given twice); JSON Lines has one whole object a line',
    ]);
  });

  it('of far too many lines is read no further than that is clear', async () => {
    const problems = await problemsOf('{}\n'.repeat(200_000));
    const tooMany = 'items: a batch has at most 100000 items, and there are more; divide it';
    expect(problems.filter((problem) => !problem.startsWith('line '))).toEqual([tooMany]);
    expect(problems.findLast((problem) => problem.startsWith('line '))).toMatch(/^line \d{5}: /);
  });

  it('takes the largest prompt, however it is escaped', async () => {
    const prompt = '\u0001'.repeat(MAX_PROMPT_BYTES);
    const { items } = await read(line({ prompt }));
    expect(items[0]?.request.prompt).toBe(prompt);
  });
});
