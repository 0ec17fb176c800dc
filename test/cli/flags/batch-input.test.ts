import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { COLUMNS, readBatchFile } from '../../../src/cli/flags/batch-input';
import { FLAG_BY_FIELD, type RequestFlags } from '../../../src/cli/flags/request-flags';
import { checkBatch } from '../../../src/client/batch/check';
import { InvalidRequestError } from '../../../src/client/errors';
import { problemText } from '../../../src/contract/checks';
import { temporaryFolder } from '../../harness/temporary-folder';

type Text = string | Uint8Array;

/** Splits a text within characters and lines, as stdin can do. */
function* piecesOf(text: Text) {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from = from * 3 + 3) yield bytes.subarray(from, from * 3 + 3);
}

async function requestsOf(text: Text, flags: RequestFlags = {}, file = '-'): Promise<unknown> {
  let requests: unknown;
  await readBatchFile(Readable.from(piecesOf(text)), file, flags, (given) => checkBatch((requests = given)));
  return requests;
}

async function problemsOf(text: Text, flags?: RequestFlags): Promise<readonly string[]> {
  const error: unknown = await requestsOf(text, flags).catch((thrown: unknown) => thrown);
  if (!(error instanceof InvalidRequestError))
    throw new Error('No InvalidRequestError was thrown.', { cause: error });
  return error.problems.map((problem) => problemText(problem, FLAG_BY_FIELD));
}

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'm' };
const CSV = 'project,job,prompt\np,j,m\n';
const line = (fields: object = {}): string =>
  JSON.stringify({ project: 'p', job: 'j', prompt: 'm', ...fields }) + '\n';

describe('a batch as CSV', () => {
  it('has a column for every field of a request, in any order, and omits a field with an empty cell', async () => {
    const all = {
      ...{ projectId: 'p', jobId: 'j', prompt: 'm', requestId: 'r', whenActive: 'wait' },
      ...{
        onUnknownDelivery: 'ask',
        deadline: '2h',
        reconcileTimeout: '1m',
        prLinkTimeout: '5s',
        maxStaleness: '10s',
      },
      polling: { initial: '1s', growth: 0.5, maximum: '1m', jitter: 0.2, timerPolls: 'all' },
    };
    const cells = 'p,j,m,r,wait,ask,2h,1m,5s,10s,1s,0.5,1m,0.2,all';
    expect(await requestsOf(`${COLUMNS.join()}\n${cells}\n`)).toEqual([all]);
    expect(await requestsOf('prompt,deadline,job,polling_growth,project\nm,,j,"",p\n')).toEqual([REQUEST]);
  });

  it('keeps line breaks and Unicode of a cell, and reports an invalid record with its first line number', async () => {
    const good = '\ufeffproject,job,prompt\r\np,j,"eins\r\nzwei ""🙂""\n"\r\n\r\np,k,ü\r\n';
    expect(await requestsOf(good)).toEqual([
      { projectId: 'p', jobId: 'j', prompt: 'eins\r\nzwei "🙂"\n' },
      { projectId: 'p', jobId: 'k', prompt: 'ü' },
    ]);
    const bad = `\r\nproject,job,prompt,deadline\r\np,j,"a\r\nb\r\n",2h\r\n\r\np,,"c\nd",2h\r\np,j,x,30\r\np,j,x\r\np,j,"m\n",1s\r\n`;
    expect(await problemsOf(bad)).toEqual([
      'line 7: job: is missing',
      expect.stringMatching(/^line 9: deadline: "30" needs a unit/),
      expect.stringMatching(/^line 10: has 3 cells, but the first line names 4 columns;/),
      expect.stringMatching(/^line 11: deadline: must be longer than maxStaleness/),
    ]);
  });
});

describe('a batch as JSON Lines', () => {
  it('has an item on each line, with the names of columns or request fields, and omits fields that are null', async () => {
    const polling = { initial: '1s', growth: 0.5, timerPolls: 3 };
    const request = { ...REQUEST, requestId: 'r', whenActive: 'wait', polling };
    const columns = { request_id: 'r', when_active: 'wait', polling_initial: '1s', deadline: null };
    const lineWithColumns = line({ ...columns, job: 'k', polling: { growth: 0.5, timerPolls: 3 } });
    const text = `\ufeff\r\n${JSON.stringify(request)}\r\n\r\n  \n${lineWithColumns}`;
    expect(await requestsOf(text)).toEqual([request, { ...request, jobId: 'k' }]);
  });

  it('reports every problem with its line number and the field name that the line uses', async () => {
    const text = [
      ...['{"project":"p"', '[1]', '{"job":"j","job":"k"}'],
      line({ deadlin: '2h', polling: { intial: '1s' } }).trim(),
      line({ projectId: 'q' }).trim(),
      line({ polling: '1s', polling_growth: '0.5', prompt: '' }).trim(),
      '{"projectId":".","jobId":"j","prompt":"m"}',
    ].join('\n');
    expect(await problemsOf(text)).toEqual([
      expect.stringMatching(/^line 1: is not a JSON object \(.+\); write one complete object per line$/),
      'line 2: is not a JSON object (it is an array); write one complete object per line',
      // JSON.parse would accept this line and use the last value.
      expect.stringMatching(/^line 3: is not a JSON object \("job" is given twice\)/),
      expect.stringMatching(/^line 4: "deadlin" is not a valid field; the valid fields are project, job, /),
      expect.stringMatching(/^line 4: "polling.intial" is not a valid field; the valid fields are /),
      'line 5: project is set twice; set it once',
      'line 6: polling: must be an object, not of type string',
      expect.stringMatching(/^line 6: prompt: must not be empty/),
      'line 6: polling_growth: must be a number from 0 to 10; it is "0.5"',
      expect.stringMatching(/^line 7: project: must not have the path segment "\."/),
    ]);
  });

  it('is not read further after too many lines', async () => {
    const problems = await problemsOf('{}\n'.repeat(200_000));
    const tooMany = 'items: must have at most 100000 items; split them into several batches';
    expect(problems.filter((problem) => !problem.startsWith('line '))).toEqual([tooMany]);
    expect(problems.findLast((problem) => problem.startsWith('line '))).toMatch(/^line \d{5}: /);
  });
});

it.each<[string, Text]>([
  ['line 1: must name the columns, separated by commas; "dedline" is', 'job,prompt,dedline\nj,m,\n'],
  ['line 1: must name the columns, separated by commas; "job;prompt" is', 'job;prompt\nj;m\n'],
  ['line 1: the column jobId duplicates an earlier column', 'project,job,prompt,jobId\np,j,m,k\n'],
  ['line 4: is not CSV (quote not closed', 'project,job,prompt\np,j,"\n"\np,j,"x,\np,,\n'],
  [
    'items: stdin is not UTF-8 (line 4); save it as UTF-8',
    Buffer.concat([Buffer.from(`${CSV}p,j,"ü\n`), Uint8Array.of(0xc3, 0x28, 0x0a)]),
  ],
  ['line 2: is not a JSON object (it is nested too deep', `${line()}{"project":${'['.repeat(200_000)}\n`],
  ...['', ' \n\r\n\t', '\ufeff', 'project,job,prompt\n'].map((text): [string, Text] => [
    'items: must have at least one item',
    text,
  ]),
])('a batch that can’t be read has exactly one problem: %s', async (problem, text) => {
  expect(await problemsOf(text)).toEqual([expect.stringContaining(problem)]);
});

const folder = temporaryFolder();
it('the format of a file is detected from its content, not from its name', async () => {
  const file = path.join(folder, 'items.csv');
  await writeFile(file, `\n\n  ${line()}`);
  expect(await requestsOf('', {}, file)).toEqual([REQUEST]);
});

it('a flag sets its field for every line that does not set the field, and an invalid flag is reported once', async () => {
  const polling = { pollingMaximum: '1m', pollingGrowth: '0.5' };
  const flags = { project: 'docs', prompt: 'Same', whenActive: 'wait', ...polling };
  expect(
    await requestsOf('job,prompt,when_active,polling_growth\nj1,,,\nj2,Other,reject,1\n', flags),
  ).toMatchObject([
    { projectId: 'docs', prompt: 'Same', whenActive: 'wait', polling: { growth: 0.5, maximum: '1m' } },
    { prompt: 'Other', whenActive: 'reject', polling: { growth: 1, maximum: '1m' } },
  ]);
  const wrong = { project: '.', deadline: '30', prompt: 'caf\ufffd' };
  expect(await problemsOf('job\nj1\nj2\n', wrong)).toEqual([
    expect.stringMatching(/^--project: must not have the path segment "\."/),
    expect.stringMatching(/^--prompt or --prompt-file: must not have U\+FFFD/),
    expect.stringMatching(/^--deadline: "30" needs a unit/),
  ]);
});
