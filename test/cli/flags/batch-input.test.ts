import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { COLUMNS, type FileFlags, readBatchFile } from '../../../src/cli/flags/batch-input';
import { FLAG_BY_FIELD } from '../../../src/cli/flags/request-flags';
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

async function requestsOf(text: Text, flags: FileFlags = {}, file = '-'): Promise<unknown> {
  let requests: unknown;
  const { allowDuplicates } = flags;
  await readBatchFile(Readable.from(piecesOf(text)), file, flags, (given) =>
    checkBatch((requests = given), { allowDuplicates }),
  );
  return requests;
}

async function problemsOf(text: Text, flags?: FileFlags): Promise<readonly string[]> {
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
      line({ projectId: 'q', job: 'k' }).trim(),
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
  ['line 1: the column jobId duplicates an earlier column', 'project,job,prompt,jobId\np,j,m,k\n'],
  ['line 4: is not CSV (quote not closed', 'project,job,prompt\np,j,"\n"\np,j,"x,\np,,\n'],
  [
    'items: stdin is not UTF-8 (line 4); save it as UTF-8 (in Excel, as "CSV UTF-8")',
    Buffer.concat([Buffer.from(`${CSV}p,j,"ü\n`), Uint8Array.of(0xc3, 0x28, 0x81, 0x0a)]),
  ],
  ['line 2: is not a JSON object (it is nested too deep', `${line()}{"project":${'['.repeat(200_000)}\n`],
  ...['', ' \n\r\n\t', '\ufeff', 'project,job,prompt\n'].map((text): [string, Text] => [
    'items: must have at least one item',
    text,
  ]),
])('a batch that can’t be read has exactly one problem: %s', async (problem, text) => {
  expect(await problemsOf(text)).toEqual([expect.stringContaining(problem)]);
});

const SEMICOLONS =
  /^line 1: separates the columns with semicolons, as a German Excel does; save the file with commas\. In Excel, /;
const WHOLE_LINE =
  /the whole line is one cell in quotes, which happens if Excel is set to semicolons, and opens and saves a file with commas/;

it.each<[string, Text, RegExp]>([
  ['with semicolons', 'project;job;prompt\r\np;j;"Fix ""it"", then test"\r\n', SEMICOLONS],
  [
    'with semicolons, quotes and a byte order mark',
    '\ufeff"project";"job";"prompt"\r\n"p";"j";"m"\r\n',
    SEMICOLONS,
  ],
  [
    'with semicolons and an empty last column',
    'project;job;prompt;\r\np;j;m;\r\n',
    /semicolons.*\. Also remove the last column, which has no name$/,
  ],
  [
    'with tabs',
    'project\tjob\tprompt\np\tj\tm\n',
    /^line 1: separates the columns with tabs, as Excel does in/,
  ],
  [
    'with the line sep=;',
    '\r\nsep=;\r\nproject;job;prompt\r\n',
    /^line 2: is "sep=;", which only Excel reads; remove the/,
  ],
  ['with a whole first line in quotes', '"project,job,prompt"\r\n"p,j,m"\r\n', WHOLE_LINE],
  [
    'with a whole line in quotes',
    'project,job,prompt\r\n"p,j,""Rebase, please"" now"\r\n',
    RegExp(`^line 2: has 1 cell, but the first line names 3 columns: ${WHOLE_LINE.source}`),
  ],
  [
    'with semicolons after the first line',
    'project,job,prompt\np;j;m\n',
    /^line 2: has 1 cell, but the first line names 3 columns: the cells are separated with semicolons/,
  ],
  [
    'with an empty last column',
    'project,job,prompt,\np,j,m,\n',
    /^line 1: column 4 has no name; name the column, or remove it if its cells are empty$/,
  ],
  [
    'with empty cells at the end of a line',
    'project,job,prompt\np,j,m,,\n',
    /^line 2: has 5 cells, but the first line names 3 columns: the cells at the end are empty; remove the empty columns/,
  ],
  ['of a Macintosh', 'project,job,prompt\rp,j,m\r', /^line 1: ends with a carriage return and no line feed/],
  [
    'in Windows-1252',
    Buffer.from(`${CSV}p,j,Gr\u00fc\u00dfe\n`, 'latin1'),
    /^items: stdin is not UTF-8 \(line 3\), but probably Windows-1252, as Excel writes it in the format "CSV"; save it as UTF-8 \(in Excel, as "CSV UTF-8"\), or convert it with iconv -f WINDOWS-1252 -t UTF-8$/,
  ],
  [
    'in UTF-16',
    Buffer.from(`\ufeff${CSV}`, 'utf16le'),
    /^items: stdin is UTF-16; save it as UTF-8 .*, or convert it with iconv -f UTF-16 -t UTF-8$/,
  ],
])(
  'a CSV file %s is rejected with one problem, which names the cause and the fix',
  async (_form, text, problem) => {
    expect(await problemsOf(text)).toEqual([expect.stringMatching(problem)]);
  },
);

// Proves B14.
it.each([
  ['CSV', 'project,job,prompt\np,j,m\n\np,j,n\np,j,m\np,,m\n', [5, 2, 6]],
  [
    'JSON Lines',
    `\n${line()}${line({ prompt: 'n' })}${line({ deadline: '2h' })}{"job":"j","prompt":"m"}\n`,
    [4, 2, 5],
  ],
])(
  'two lines of %s with the same message are rejected with both line numbers, unless duplicates are allowed',
  async (_format, text, [later = 0, earlier = 0, invalid = 0]) => {
    expect(await problemsOf(text)).toEqual([
      expect.stringMatching(
        RegExp(`^line ${later} repeats line ${earlier}: prompt: both have the same project, job and`),
      ),
      expect.stringMatching(RegExp(`^line ${invalid}: (project|job): is missing`)),
    ]);
    const valid = text.replace(/\n[^\n]*\n$/, '\n');
    expect(await requestsOf(valid, { allowDuplicates: true })).toHaveLength(3);
  },
);

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
