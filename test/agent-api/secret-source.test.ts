import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, rmSync, writeFileSync } from 'node:fs';
import filePromises, { open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, jest } from '@jest/globals';
import { SecretError, keyFromFile, keyFromText } from '../../src/agent-api/secret-source';
import { eventually } from '../../tools/lib/eventually';
import { holdTimers } from '../harness/hold-timers';
import { temporaryFolder } from '../harness/temporary-folder';

const folder = temporaryFolder();
const path = join(folder, 'key');
const pipe = join(folder, 'pipe');
execFileSync('mkfifo', [pipe]);

it('removes white space around a secret, and rejects an invalid text without showing it', async () => {
  expect(await keyFromText(' agnt_abcd\r\n').current()).toBe('agnt_abcd');
  const problem =
    'must contain only the secret: printable ASCII without white space, with at least 8 letters and digits';
  for (const text of ['  \n', 'agnt_abcd\r\nx-evil: 1', 'schlüssel', 'seven77', '--seven77--'])
    expect(() => keyFromText(text)).toThrow(
      new SecretError(
        'the text that keyFromText received',
        text.trim() === '' ? `is empty; it ${problem}` : problem,
      ),
    );
});

it('reads a key file at every use, and uses the last valid key while the file is missing', async () => {
  writeFileSync(path, 'admin-key-1\n');
  const source = await keyFromFile(path);
  expect(await source.current()).toBe('admin-key-1');
  // The new key has the same length, and the file may have the same time stamp as before.
  writeFileSync(path, 'admin-key-2\n');
  expect(await source.current()).toBe('admin-key-2');
  rmSync(path);
  expect(await source.current()).toBe('admin-key-2');
});

// Proves K5.
it('reports each change of the key file after which the file can’t be used once, without its content, and reports when it can be used again', async () => {
  writeFileSync(path, 'admin-key-1\n');
  const problems: (string | undefined)[] = [];
  const source = await keyFromFile(path, { onProblem: (problem) => problems.push(problem) });
  const contents = ['', 'half', 'half-', '\ufeffadmin-key-2', Buffer.from('admin-key-2', 'utf16le')];
  for (const content of contents) {
    writeFileSync(path, content);
    for (let n = 0; n < 3; n += 1) expect(await source.current()).toBe('admin-key-1');
  }
  const invalid = expect.stringMatching(/^must contain only the secret/);
  expect(problems).toEqual([expect.stringMatching(/^is empty/), invalid, invalid, invalid, invalid]);
  rmSync(path);
  for (let n = 0; n < 3; n += 1) expect(await source.current()).toBe('admin-key-1');
  writeFileSync(path, 'admin-key-3');
  for (let n = 0; n < 3; n += 1) expect(await source.current()).toBe('admin-key-3');
  expect(problems.slice(contents.length)).toEqual([
    "can't be read: ENOENT; set it to the path of a readable file",
    undefined,
  ]);
  expect(problems.join()).not.toMatch(/half|admin-key-/);
});

// Proves K4.
it.each<[string, string, RegExp]>([
  [
    'does not exist',
    join(folder, 'nothing'),
    /can't be read: ENOENT; set it to the path of a readable file$/,
  ],
  ['is too large', path, /must contain only the secret: /],
  ['is a pipe', pipe, /is not a regular file, so it can't be read for each request$/],
])(
  'rejects a key file that %s, with an error that has the path and not the content',
  async (_problem, name, expected) => {
    writeFileSync(path, 'hidden'.repeat(10_000));
    const error: unknown = await keyFromFile(name).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SecretError);
    expect(String(error)).toMatch(expected);
    expect(String(error)).toContain(`the secret file ${JSON.stringify(name)}`);
    expect(String(error)).not.toContain('hidden');
  },
);

// Proves K4.
it('if the mount of the key file hangs, a start fails after 2 s; the last valid key stays in use, with at most one read in progress', async () => {
  writeFileSync(path, 'admin-key-1');
  const source = await keyFromFile(path);
  // Opening a pipe without a writer blocks one of the four threads of libuv's pool, so that a fifth read waits indefinitely.
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
  // Each of the two sources has made one read.
  expect(opened).toHaveBeenCalledTimes(2);
  opened.mockRestore();
  jest.useRealTimers();
  const writer = openSync(pipe, constants.O_RDWR);
  for (const file of await Promise.all(blocked)) await file.close();
  closeSync(writer);
  await eventually('the new key is used', async () => (await source.current()) === 'admin-key-2');
});
