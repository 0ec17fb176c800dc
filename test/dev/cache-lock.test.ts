import { spawnSync } from 'node:child_process';
import { access, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { withCacheLock } from '../../dev/cache-lock';

describe('the lock of the cache', () => {
  let folder: string;
  let said: string[];

  beforeEach(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'cache-lock-test-'));
    said = [];
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const file = (): string => path.join(folder, 'lock');
  const locked = <T>(work: () => Promise<T>): Promise<T> =>
    withCacheLock(file(), (line) => said.push(line), work);

  it('lets one work at a time', async () => {
    let working = 0;
    const work = async (): Promise<number> => {
      working += 1;
      const together = working;
      await access(folder);
      working -= 1;
      return together;
    };
    expect(await Promise.all([locked(work), locked(work), locked(work)])).toEqual([1, 1, 1]);
    expect(said[0]).toBe('another process is getting the Temporal CLI; waiting for it');
  });

  it('is given back when the work fails', async () => {
    await expect(locked(() => Promise.reject(new Error('no space')))).rejects.toThrow('no space');
    await expect(access(file())).rejects.toThrow('ENOENT');
  });

  it('of a process that was killed is taken over at once', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    await writeFile(file(), `${pid} ${os.hostname()}`);
    expect(await locked(() => Promise.resolve('done'))).toBe('done');
    expect(said).toEqual([]);
  });

  it('of another machine is taken over when nobody has touched it for half a minute', async () => {
    await writeFile(file(), '1 another-machine');
    const longAgo = new Date(Date.now() - 31_000);
    await utimes(file(), longAgo, longAgo);
    expect(await locked(() => Promise.resolve('done'))).toBe('done');
  });
});
