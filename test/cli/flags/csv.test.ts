import { describe, expect, it } from '@jest/globals';
import { COLUMNS } from '../../../src/cli/flags/batch-input';
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

  it('names the first line that is not UTF-8', async () => {
    const broken = Uint8Array.of(0xc3, 0x28);
    const text = Buffer.concat([Buffer.from(`${HEADER}p,j,"ü\n`), broken, Buffer.from('\n",\np,k,m,\n')]);
    expect(await problemsOf(text, {}, 3)).toEqual(['items: stdin is not UTF-8 (line 3); save it as UTF-8']);
  });

  it('names an unknown column and the columns that there are, once, and one that is named twice', async () => {
    expect(await problemsOf('project,job,prompt,dedline,zzzzzzzzzzzz\np,j,m,,\np,k,m,2h,\n')).toEqual([
      `line 1: "dedline" is not a field here; the fields are ${COLUMNS.join(', ')}`,
      `line 1: "zzzzzzzzzzzz" is not a field here; the fields are ${COLUMNS.join(', ')}`,
    ]);
    expect(await problemsOf('project,job,prompt,prompt_file\np,j,,x.txt')).toContain(
      'line 2: prompt: is missing',
    );
    const twice = 'line 1: the column job is named twice';
    expect(await problemsOf('project,job,prompt,job\np,j,m,k\n')).toEqual([twice]);
  });

  it('says what is wrong with a file without names of columns', async () => {
    expect(await problemsOf('docs,job-1,Hello\ndocs,job-2,Hello\n')).toEqual([
      expect.stringMatching(
        /^line 1: must name the columns \(project, job, prompt, .*\); "docs,job-1,Hello" has none of them; /,
      ),
    ]);
    expect(await problemsOf('project;job;prompt\np;j;m\n')).toEqual([
      expect.stringMatching(/columns are separated by commas$/),
    ]);
  });

  it.each([
    ['p,j,say "x",\np,j,,\n', 'invalid opening quote'],
    ['p,j,"x" y,\np,j,,\n', 'invalid closing quote'],
    ['p,j,"x,\np,j,,\n', 'quote not closed'],
  ])('stops at a quote out of place, by its line (%#)', async (records, problem) => {
    expect(await problemsOf(`${HEADER}p,j,"\n",\np,,m,\n${records}`)).toEqual([
      'line 4: job: is missing',
      expect.stringContaining(`line 5: is not CSV (${problem})`),
    ]);
  });

  it('is no batch where reading ended early, whatever was read before', async () => {
    // eslint-disable-next-line @typescript-eslint/require-await -- as a pipe that breaks
    async function* broken() {
      yield Buffer.from(`${HEADER}p,j,m,\n`);
      throw new Error('EIO');
    }
    expect(await problemsOf('', { stdin: broken() })).toEqual(["items: stdin can't be read (EIO)"]);
  });
});
