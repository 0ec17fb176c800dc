import { describe, expect, it } from '@jest/globals';
import { COLUMNS } from '../../../../src/cli/batch-input/lines';
import { MAX_LINE_BYTES } from '../../../../src/cli/batch-input/line-blocks';
import { problemsOf, requestsOf } from './reading';

const HEADER = 'project,job,prompt,request_id\n';

describe('a batch as CSV', () => {
  it('has an item a record, with the columns in any order', async () => {
    expect(await requestsOf('prompt,job,project\nHello,j1,docs\n" Hi, ""you"" ",j2,docs')).toEqual([
      { projectId: 'docs', jobId: 'j1', prompt: 'Hello' },
      { projectId: 'docs', jobId: 'j2', prompt: ' Hi, "you" ' },
    ]);
  });

  it('has a column for every field of a request', async () => {
    const cells = 'p,j,m,r,wait,ask,2h,1m,5s,10s,1s,0.5,1m,0.2,all';
    expect(await requestsOf(`${COLUMNS.join()}\n${cells}\n`)).toEqual([
      {
        projectId: 'p',
        jobId: 'j',
        prompt: 'm',
        requestId: 'r',
        whenActive: 'wait',
        onUnknownDelivery: 'ask',
        deadline: '2h',
        reconcile: '1m',
        settle: '5s',
        confirm: '10s',
        polling: { initial: '1s', growth: 0.5, maximum: '1m', jitter: 0.2, timerPolls: 'all' },
      },
    ]);
  });

  it("takes the request's own names for columns too", async () => {
    expect(await requestsOf('projectId,jobId,prompt,requestId,whenActive\np,j,m,r,wait\n')).toEqual([
      { projectId: 'p', jobId: 'j', prompt: 'm', requestId: 'r', whenActive: 'wait' },
    ]);
  });

  it.each([1, 2, 7, 65_536])(
    'may have a byte order mark, CRLF and line breaks within quotes, read in pieces of %i bytes',
    async (pieceBytes) => {
      const text = '\ufeffproject,job,prompt\r\np,j,"eins\r\nzwei 🙂\n\nvier"\r\n\r\np,k,ü\r\n';
      expect(await requestsOf(text, {}, pieceBytes)).toEqual([
        { projectId: 'p', jobId: 'j', prompt: 'eins\r\nzwei 🙂\n\nvier' },
        { projectId: 'p', jobId: 'k', prompt: 'ü' },
      ]);
    },
  );

  it('takes an empty cell for nothing given, quoted or not', async () => {
    expect(await requestsOf('project,job,prompt,deadline,polling_growth\np,j,m,,""\n')).toEqual([
      { projectId: 'p', jobId: 'j', prompt: 'm' },
    ]);
  });

  it('skips records without content, as spreadsheets leave them behind', async () => {
    expect(await requestsOf(`\n${HEADER}p,j,m,\n,,,\n\n  \np,k,m,\n,,,`)).toHaveLength(2);
  });

  it.each([1, 5, 65_536])(
    'names each bad record by the line where it begins, read in pieces of %i bytes',
    async (pieceBytes) => {
      const text = `\r\nproject,job,prompt,deadline\r\np,j,"a\r\nb\r\n",2h\r\n\r\np,,"c\nd",2h\r\np,j,x,30\r\np,j,x\r\np,j,"m\n",1s\r\n`;
      expect(await problemsOf(text, {}, pieceBytes)).toEqual([
        'line 7: job: is missing',
        expect.stringMatching(/^line 9: deadline: "30" needs a unit/),
        expect.stringMatching(/^line 10: has 3 cells, and the first line names 4 columns;/),
        expect.stringMatching(/^line 11: deadline: must be more than the confirm time/),
      ]);
    },
  );

  it('names every line that is not UTF-8', async () => {
    const broken = Uint8Array.of(0xc3, 0x28);
    const text = Buffer.concat([
      Buffer.from(`${HEADER}p,j,"ü\n`),
      broken,
      Buffer.from('\n",\np,k,m,\np,l,'),
      broken,
      Buffer.from(','),
    ]);
    const problem = 'is not UTF-8; save the file as UTF-8';
    expect(await problemsOf(text, {}, 3)).toEqual([`line 3: ${problem}`, `line 6: ${problem}`]);
  });

  it('names an unknown column and the columns that there are, once', async () => {
    expect(await problemsOf('project,job,prompt,dedline,zzzzzzzzzzzz\np,j,m,,\np,k,m,2h,\n')).toEqual([
      `line 1: "dedline" is not a column here; the columns are ${COLUMNS.join(', ')}`,
      `line 1: "zzzzzzzzzzzz" is not a column here; the columns are ${COLUMNS.join(', ')}`,
    ]);
    expect(await problemsOf('project,job,prompt,prompt_file\np,j,,x.txt')).toContain(
      'line 2: prompt: is missing',
    );
  });

  it('has no two columns for the same field, unless a line uses only one', async () => {
    expect(await requestsOf('project,projectId,job,prompt\np,,j,m\n,q,j,m\n')).toMatchObject([
      { projectId: 'p' },
      { projectId: 'q' },
    ]);
    expect(await problemsOf('project,projectId,job,prompt\np,q,j,m\n')).toEqual([
      'line 2: project and projectId are the same field; give one of the two',
    ]);
    expect(await problemsOf('project,job,prompt,job\np,j,m,k\n')).toEqual([
      'line 1: the column job is named twice',
    ]);
  });

  it('says what is wrong with a file without names of columns', async () => {
    expect(await problemsOf('docs,job-1,Hello\ndocs,job-2,Hello\n')).toEqual([
      expect.stringMatching(
        /^line 1: must name the columns \(project, job, prompt, .*\); "docs" is not one of them$/,
      ),
    ]);
    expect(await problemsOf('project;job;prompt\np;j;m\n')).toEqual([
      expect.stringMatching(/separated by commas, not by ";"$/),
    ]);
  });

  it.each([
    ['p,j,say "x",\np,j,,\n', 'a cell has a quote but does not begin with one'],
    ['p,j,"x" y,\np,j,,\n', 'a cell has text after its closing quote'],
    ['p,j,"x,\np,j,,\n', 'a quote is not closed'],
    [
      `p,j,"${`${'x'.repeat(1_023)}\n`.repeat(MAX_LINE_BYTES / 1_024)}\n",\n`,
      'its record is longer than 4 MiB',
    ],
  ])('stops at a quote out of place, by its line (%#)', async (records, problem) => {
    expect(await problemsOf(`${HEADER}p,j,"\n",\np,,m,\n${records}`)).toEqual([
      'line 4: job: is missing',
      expect.stringContaining(`line 5: ${problem}`),
    ]);
  });

  it('is no batch where reading ended early, whatever was read before', async () => {
    expect(await problemsOf(`${HEADER}p,j,m,\np,k,"${'x'.repeat(MAX_LINE_BYTES + 100_000)}`)).toEqual([
      'line 3: is longer than 4 MiB, the maximum of an item; the rest was not read',
    ]);
    // eslint-disable-next-line @typescript-eslint/require-await -- as a pipe that breaks
    async function* broken() {
      yield Buffer.from(`${HEADER}p,j,m,\n`);
      throw new Error('EIO');
    }
    expect(await problemsOf('', { stdin: broken() })).toEqual(["stdin can't be read (EIO)"]);
  });

  it('has at most 100,000 records', async () => {
    const records = Array.from({ length: 100_001 }, (_, index) => `p${index % 20},j${index},rebase,\n`);
    expect(await problemsOf(HEADER + records.join(''))).toEqual([
      'items: a batch has at most 100000 items, and there are more; divide it',
    ]);
  });
});
