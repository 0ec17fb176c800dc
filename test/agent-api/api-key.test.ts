import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, writeFileSync } from 'node:fs';
import filePromises, { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, jest } from '@jest/globals';
import { ApiKeyError, keyFromFile, keyFromText } from '../../src/agent-api/api-key';
import { eventually } from '../../tools/lib/eventually';
import { holdTimers } from '../harness/hold-timers';
import { temporaryFolder } from '../harness/temporary-folder';

const folder = temporaryFolder();
const path = join(folder, 'key');
const pipe = join(folder, 'pipe');
execFileSync('mkfifo', [pipe]);

it('accepts a key without the white space around it, and rejects any other text without showing it', async () => {
  expect(await keyFromText(' agnt_abcd\r\n').current()).toBe('agnt_abcd');
  const problem =
    'must contain only the admin key: printable ASCII without white space, with at least 8 letters and digits';
  for (const text of ['  \n', 'agnt_abcd\r\nx-evil: 1', 'schlüssel', 'seven77', '--seven77--'])
    expect(() => keyFromText(text)).toThrow(new ApiKeyError('AGENT_API_KEY', problem));
});

it('a key file is read again at every use, and the last good key is kept while it is not there', async () => {
  writeFileSync(path, 'admin-key-1\n');
  const source = await keyFromFile(path);
  expect(await source.current()).toBe('admin-key-1');
  // Of the same length and within the same tick of the file system's clock.
  writeFileSync(path, 'admin-key-2\n');
  expect(await source.current()).toBe('admin-key-2');
  rmSync(path);
  expect(await source.current()).toBe('admin-key-2');
});

// Proves K4.
it.each<[string, string, RegExp]>([
  ['is not there', join(folder, 'nothing'), /can't be read: ENOENT$/],
  ['is far too big', path, /must contain only the admin key/],
  ['is a pipe, at once', pipe, /is not a regular file, so it can't be read at each rotation$/],
])('a key file that %s is refused by its name and without its content', async (_what, name, expected) => {
  writeFileSync(path, 'secret'.repeat(10_000));
  const error: unknown = await keyFromFile(name).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ApiKeyError);
  expect(String(error)).toMatch(expected);
  expect(String(error)).toContain(`the key file ${JSON.stringify(name)}`);
  expect(String(error)).not.toContain('secret');
});

// Proves K4.
it('a mount that hangs is waited for for seconds, by one read: a start fails, and the last good key stays in use', async () => {
  writeFileSync(path, 'admin-key-1');
  const source = await keyFromFile(path);
  // Opening a pipe that nobody writes into blocks a thread of libuv's pool, which has four: a fifth read waits for ever.
  const blocked = Array.from({ length: 4 }, () => open(pipe, 'r'));
  writeFileSync(path, 'admin-key-2');
  const opened = jest.spyOn(filePromises, 'open');
  holdTimers();
  const reading = Promise.all(Array.from({ length: 20 }, () => source.current()));
  const start = keyFromFile(path).catch(String);
  jest.advanceTimersByTime(2_000);
  expect(new Set(await reading)).toEqual(new Set(['admin-key-1']));
  expect(await start).toMatch(/can't be read within 2s; its mount may hang$/);
  for (let n = 0; n < 20; n += 1) expect(await source.current()).toBe('admin-key-1');
  // Each of the two sources by one read.
  expect(opened).toHaveBeenCalledTimes(2);
  opened.mockRestore();
  jest.useRealTimers();
  const writer = openSync(pipe, constants.O_RDWR);
  for (const file of await Promise.all(blocked)) await file.close();
  closeSync(writer);
  await eventually('the new key is used', async () => (await source.current()) === 'admin-key-2');
});
