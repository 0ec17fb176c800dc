import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { lineBlocks, MAX_INPUT_BYTES } from '../../../../src/cli/batch-input/line-blocks';
import { problemOf } from '../../../../src/cli/errors';
import { problemsOf, read, requestsOf } from './reading';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'batch-'));
});
afterAll(() => rm(folder, { recursive: true }));

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

  it('goes by the name, not by the content, where the name tells', async () => {
    expect(await problemsOf('', { file: await file('wrong.csv', JSON_LINES) })).toEqual([
      expect.stringMatching(/^line 1: a cell has a quote but/),
    ]);
  });

  it('is what is asked for', async () => {
    expect(
      await requestsOf('', { file: await file('right.csv', JSON_LINES), flags: { format: 'jsonl' } }),
    ).toEqual(REQUESTS);
    expect(await requestsOf(CSV, { flags: { format: 'csv' } })).toEqual(REQUESTS);
    expect(await problemsOf(CSV, { flags: { format: 'xml' } })).toEqual([
      '--format: must be jsonl or csv; it is "xml"',
    ]);
  });

  it('makes no difference to what the batch is', async () => {
    expect(await read(CSV)).toEqual(await read(JSON_LINES));
  });
});

describe('the flags of a batch', () => {
  it('hold where a line says nothing, field by field', async () => {
    const flags = { project: 'docs', whenActive: 'wait', pollingMaximum: '1m', pollingGrowth: '0.5' };
    const csv = 'job,prompt,when_active,polling_growth\nj1,,,\nj2,Other,reject,1\n';
    expect(await requestsOf(csv, { flags, prompt: 'Same' })).toEqual([
      {
        projectId: 'docs',
        jobId: 'j1',
        prompt: 'Same',
        whenActive: 'wait',
        polling: { growth: 0.5, maximum: '1m' },
      },
      {
        projectId: 'docs',
        jobId: 'j2',
        prompt: 'Other',
        whenActive: 'reject',
        polling: { growth: 1, maximum: '1m' },
      },
    ]);
  });

  it('are told once where they are wrong themselves, as flags', async () => {
    const flags = { project: '.', deadline: '30' };
    expect(await problemsOf('job\nj1\nj2\n', { flags, prompt: 'm' })).toEqual([
      expect.stringMatching(/^--project: must not be "\."/),
      expect.stringMatching(/^--deadline: "30" needs a unit/),
    ]);
  });

  it('give a request id to no line', async () => {
    const { items } = await read(CSV, { flags: { requestId: 'r' } });
    expect(items[0]?.request).not.toHaveProperty('requestId');
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
      '"/nowhere/items.csv" can\'t be read (no such file)',
    ]);
    expect(await problemsOf('', { file: folder })).toEqual([expect.stringContaining('it is a folder')]);
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
    const blocks = lineBlocks('-', Readable.from(endless()));
    const readAll = async (): Promise<void> => {
      let lines = 1;
      for await (const { firstLine } of blocks) expect(firstLine).toBe(lines++);
    };
    await expect(readAll()).rejects.toThrow('stdin is larger than 1 GiB; split it');
    expect(given).toBeLessThan(MAX_INPUT_BYTES + 64 * 2 ** 20);
  });

  it('with problems ends a command as a usage error that lists them', async () => {
    const error: unknown = await read('job\n.\n').catch((thrown: unknown) => thrown);
    expect(problemOf(error)).toMatchObject({
      exitCode: 2,
      type: 'InvalidRequest',
      problems: await problemsOf('job\n.\n'),
    });
  });
});
