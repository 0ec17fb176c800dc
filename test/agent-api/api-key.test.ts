import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import filePromises, { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ApiKeyError, keyFromFile, keyFromText } from '../../src/agent-api/api-key';
import { eventually } from '../harness/eventually';
import { holdTimers } from '../harness/hold-timers';
import { temporaryFolder } from '../harness/temporary-folder';

describe('keyFromText', () => {
  it('takes the key without the white space around it', async () => {
    expect(await keyFromText(' agnt_abc\r\n').current()).toBe('agnt_abc');
  });

  it.each([
    ['empty', '  \n'],
    ['two lines', 'agnt_abc\r\nx-evil: 1'],
    ['not ASCII', 'schlüssel'],
    ['too short to be hidden', 'seven77'],
  ])('refuses a key that is %s, without showing it', (_what, text) => {
    const problem =
      'must hold the admin key alone: at least 8 printable ASCII characters without white space';
    expect(() => keyFromText(text)).toThrow(new ApiKeyError('AGENT_API_KEY', problem));
  });
});

describe('keyFromFile', () => {
  const root = temporaryFolder();
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(root, 'test-'));
    path = join(folder, 'key');
  });

  it('follows the links with which Kubernetes mounts a secret', async () => {
    mkdirSync(join(folder, '..data-1'));
    writeFileSync(join(folder, '..data-1', 'key'), 'the-key-1');
    symlinkSync('..data-1', join(folder, '..data'));
    symlinkSync(join('..data', 'key'), path);
    expect(await (await keyFromFile(path)).current()).toBe('the-key-1');
  });

  it('reads the file again at every use', async () => {
    writeFileSync(path, 'the-key-1\n');
    const source = await keyFromFile(path);
    expect(await source.current()).toBe('the-key-1');
    // Of the same length and within the same tick of the file system's clock.
    writeFileSync(path, 'the-key-2\n');
    expect(await source.current()).toBe('the-key-2');
  });

  it.each<[string, string | null, RegExp]>([
    ['that is not there', null, /can't be read: ENOENT$/],
    ['that is far too big', 'secret'.repeat(10_000), /must hold the admin key alone/],
  ])('refuses a file %s, by its name and without its content', async (_what, content, expected) => {
    if (content !== null) writeFileSync(path, content);
    const error: unknown = await keyFromFile(path).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ApiKeyError);
    expect(String(error)).toMatch(expected);
    expect(String(error)).toContain(`the key file ${JSON.stringify(path)}`);
    expect(String(error)).not.toContain('secret');
  });

  // Proves K4.
  it('refuses a pipe at once, whether or not somebody writes into it', async () => {
    execFileSync('mkfifo', [path]);
    const refusal = /is not a regular file, so it can't be read at each rotation$/;
    await expect(keyFromFile(path)).rejects.toThrow(refusal);
    const writer = openSync(path, 'r+');
    writeSync(writer, 'the-key-1');
    await expect(keyFromFile(path)).rejects.toThrow(refusal);
    closeSync(writer);
  });

  describe('that does not answer', () => {
    // Opening a pipe that nobody writes into blocks a thread of libuv's pool, which has four: a fifth read waits for ever.
    let pipe: string;
    let blocked: Promise<FileHandle>[];
    beforeEach(() => {
      holdTimers();
      pipe = join(folder, 'pipe');
      execFileSync('mkfifo', [pipe]);
      writeFileSync(path, 'the-key-1');
    });
    const blockFiles = () => {
      blocked = Array.from({ length: 4 }, () => open(pipe, 'r'));
    };
    afterEach(() => void jest.useRealTimers());
    const unblockFiles = async () => {
      const writer = openSync(pipe, constants.O_RDWR);
      for (const file of await Promise.all(blocked)) await file.close();
      closeSync(writer);
    };

    it('is refused at the start, within seconds', async () => {
      blockFiles();
      const reading = keyFromFile(path).catch((reason: unknown) => reason);
      jest.advanceTimersByTime(2_000);
      const error: unknown = await reading;
      expect(error).toBeInstanceOf(ApiKeyError);
      expect(String(error)).toMatch(/can't be read within 2s; its mount may hang$/);
      await unblockFiles();
    });

    // Proves K4.
    it('is not waited for by more than one read, and the last good key stays in use until it answers', async () => {
      const source = await keyFromFile(path);
      blockFiles();
      writeFileSync(path, 'the-key-2');
      const opened = jest.spyOn(filePromises, 'open');
      const reading = Promise.all(Array.from({ length: 20 }, () => source.current()));
      jest.advanceTimersByTime(2_000);
      const keys = await reading;
      expect(new Set(keys)).toEqual(new Set(['the-key-1']));
      for (let n = 0; n < 20; n += 1) expect(await source.current()).toBe('the-key-1');
      expect(opened).toHaveBeenCalledTimes(1);
      opened.mockRestore();
      await unblockFiles();
      jest.useRealTimers();
      await eventually('the new key is used', async () => (await source.current()) === 'the-key-2');
    });
  });

  it('keeps the last good key while the file is not there', async () => {
    writeFileSync(path, 'the-key-1');
    const source = await keyFromFile(path);
    rmSync(path);
    expect(await source.current()).toBe('the-key-1');
  });
});
