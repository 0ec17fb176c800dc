import { describe, expect, it } from '@jest/globals';
import { MAX_LINE_BYTES } from '../../../../src/cli/batch-input/line-blocks';
import { MAX_PROMPT_BYTES } from '../../../../src/core/text';
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
      'line 4: "deadlin" is not a field here; did you mean deadline?',
      'line 4: "polling.intial" is not a field here; did you mean polling.initial?',
      'line 5: project and projectId are the same field; give one of the two',
      'line 6: polling_initial and polling.initial are the same field; give one of the two',
      'line 7: polling: must be an object, not of type string',
      expect.stringMatching(/^line 7: prompt: must not be empty/),
      'line 7: polling_growth: must be a number from 0 to 10; it is "0.5"',
      expect.stringMatching(/^line 8: projectId: must not be "\."/),
    ]);
  });

  it('names both lines that use the same name for the same job', async () => {
    const text =
      line({ request_id: 'r' }) + '\n' + line({ request_id: 'r', job: 'k' }) + line({ request_id: 'r' });
    expect(await problemsOf(text)).toEqual([
      'line 4: request_id: "r" is already used by line 1 for the same job; choose another',
    ]);
  });

  it('names every line that is not UTF-8, among the other problems', async () => {
    const text = Buffer.from(line({ job: '' }) + line({ prompt: '#' }) + line({ job: '' }));
    text[text.indexOf('#')] = 0xff;
    expect(await problemsOf(text)).toEqual([
      'line 1: job: must not be empty',
      expect.stringMatching(/^line 2: is not UTF-8;/),
      'line 3: job: must not be empty',
    ]);
  });

  it('tells every bad line, however many there are', async () => {
    const problems = await problemsOf(line({ job: '' }).repeat(1_234));
    expect(problems).toHaveLength(1_234);
    expect(problems.at(-1)).toBe('line 1234: job: must not be empty');
  });

  it('takes the largest prompt, however it is escaped, and stops at a line that no item can be', async () => {
    const prompt = '\u0001'.repeat(MAX_PROMPT_BYTES);
    const { items } = await read(line({ prompt }));
    expect(items[0]?.request.prompt).toBe(prompt);
    const long = line({ job: '' }) + 'x'.repeat(MAX_LINE_BYTES + 100_000);
    expect(await problemsOf(long)).toEqual([
      'line 2: is longer than 4 MiB, the maximum of an item; the rest was not read',
    ]);
  });

  it('may be 100,000 lines long', async () => {
    const text = Array.from({ length: 100_000 }, (_, index) => line({ job: `j${index}` })).join('');
    const { items } = await read(text);
    expect(items).toHaveLength(100_000);
    expect(items.at(-1)?.request).toMatchObject({ jobId: 'j99999' });
    expect(new Set(items.map(({ key }) => key)).size).toBe(100_000);
  });
});
