import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { temporaryFolder } from '../../harness/temporary-folder';
import { problemsOf, requestsOf } from './reading';

const folder = temporaryFolder();

async function file(name: string, content: string): Promise<string> {
  const whole = path.join(folder, name);
  await writeFile(whole, content);
  return whole;
}

const CSV = 'project,job,prompt\np,j,m\n';
const JSON_LINES = '{"project":"p","job":"j","prompt":"m"}\n';
const REQUESTS = [{ projectId: 'p', jobId: 'j', prompt: 'm' }];

describe('the format of a batch', () => {
  it.each([
    ['items.csv', CSV],
    ['items.CSV', CSV],
    ['items.jsonl', JSON_LINES],
    ['items.ndjson', JSON_LINES],
    ['items.txt', CSV],
    ['items', `\n\n  ${JSON_LINES}`],
  ])('is told by %s or its content', async (name, content) => {
    expect(await requestsOf('', { file: await file(name, content) })).toEqual(REQUESTS);
  });

  it('is what is asked for', async () => {
    expect(
      await requestsOf('', { file: await file('right.csv', JSON_LINES), flags: { format: 'jsonl' } }),
    ).toEqual(REQUESTS);
    expect(await requestsOf(CSV, { flags: { format: 'csv' } })).toEqual(REQUESTS);
  });
});

describe('the flags of a batch', () => {
  it('hold where a line says nothing, field by field', async () => {
    const flags = { project: 'docs', whenActive: 'wait', pollingMaximum: '1m', pollingGrowth: '0.5' };
    const csv = 'job,prompt,when_active,polling_growth\nj1,,,\nj2,Other,reject,1\n';
    const [same, other] = [
      { growth: 0.5, maximum: '1m' },
      { growth: 1, maximum: '1m' },
    ];
    expect(await requestsOf(csv, { flags: { ...flags, prompt: 'Same' } })).toEqual([
      { projectId: 'docs', jobId: 'j1', prompt: 'Same', whenActive: 'wait', polling: same },
      { projectId: 'docs', jobId: 'j2', prompt: 'Other', whenActive: 'reject', polling: other },
    ]);
  });

  it('are told once where they are wrong themselves, as flags', async () => {
    const flags = { project: '.', deadline: '30' };
    expect(await problemsOf('job\nj1\nj2\n', { flags: { ...flags, prompt: 'm' } })).toEqual([
      expect.stringMatching(/^--project: must not be "\."/),
      expect.stringMatching(/^--deadline: "30" needs a unit/),
    ]);
  });
});

describe('an input', () => {
  it.each([
    ['nothing', ''],
    ['blanks', ' \n\r\n\t'],
    ['a byte order mark', '\ufeff'],
    ['the names of columns', 'project,job,prompt\n'],
  ])('of %s is no batch', async (_, text) => {
    expect(await problemsOf(text)).toEqual(['items: there are no items']);
  });

  it('that can not be read is told by its name', async () => {
    expect(await problemsOf('', { file: '/nowhere/items.csv' })).toEqual([
      expect.stringMatching(/^items: "\/nowhere\/items.csv" can't be read \(ENOENT: no such file/),
    ]);
    expect(await problemsOf('', { file: folder })).toEqual([expect.stringContaining('EISDIR')]);
  });

  it('that is larger than memory should hold is not read to its end', async () => {
    const line = Buffer.alloc(2 ** 20, 'x');
    line[line.length - 1] = 0x0a;
    let given = 0;
    function* endless() {
      for (;;) {
        given += line.length;
        yield line;
      }
    }
    expect(await problemsOf('', { stdin: Readable.from(endless()) })).toEqual([
      `items: stdin holds more than ${256 * 2 ** 20} bytes, the maximum`,
    ]);
    expect(given).toBeLessThan(320 * 2 ** 20);
  });
});
