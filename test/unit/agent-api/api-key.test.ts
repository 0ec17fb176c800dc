import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ApiKeyError, keyFromFile, keyFromText, KeyRedactor, redact } from '../../../src/agent-api/api-key';

describe('keyFromText', () => {
  it('takes the key without the white space around it', async () => {
    expect(await keyFromText(' agnt_abc\r\n').current()).toBe('agnt_abc');
  });

  it.each(['', '  \n'])('refuses an empty text: %j', (text) => {
    expect(() => keyFromText(text)).toThrow(
      new ApiKeyError('AGENT_API_KEY is empty; it must hold the admin key'),
    );
  });

  it.each(['two words', 'a\r\nx-evil: 1', 'schlüssel', 'a\u0000b', 'x'.repeat(20_000)])(
    'refuses what no header can carry, without showing it',
    (text) => {
      expect(() => keyFromText(text)).toThrow(
        new ApiKeyError(
          'AGENT_API_KEY must hold the admin key alone: printable ASCII characters without white space',
        ),
      );
    },
  );
});

describe('keyFromFile', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'agent-key-'));
    path = join(folder, 'key');
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('reads the file again at every use', async () => {
    writeFileSync(path, 'key-1\n');
    const source = keyFromFile(path);
    expect(await source.current()).toBe('key-1');
    // Of the same length and within the same tick of the file system's clock.
    writeFileSync(path, 'key-2\n');
    expect(await source.current()).toBe('key-2');
  });

  it.each<[string, () => void, RegExp]>([
    ['that is not there', () => undefined, /can't be read: ENOENT$/],
    [
      'that is empty',
      () => {
        writeFileSync(path, '');
      },
      /is empty; it must hold the admin key$/,
    ],
    [
      'with a sentence in it',
      () => {
        writeFileSync(path, 'the secret');
      },
      /must hold the admin key alone/,
    ],
    [
      'that is far too big',
      () => {
        writeFileSync(path, 'secret'.repeat(10_000));
      },
      /has 60000 bytes: that is no key$/,
    ],
  ])('refuses a file %s, by its name and without its content', (_what, prepare, expected) => {
    prepare();
    const error = thrownBy(() => keyFromFile(path));
    expect(error).toBeInstanceOf(ApiKeyError);
    expect(error.message).toMatch(expected);
    expect(error.message).toContain(`the key file ${JSON.stringify(path)}`);
    expect(error.message).not.toContain('secret');
  });

  it('refuses a folder', () => {
    expect(() => keyFromFile(folder)).toThrow(/is no regular file$/);
  });

  it('keeps the last good key while the file may not be read', async () => {
    writeFileSync(path, 'key-1');
    const source = keyFromFile(path);
    chmodSync(path, 0o000);
    expect(await source.current()).toBe('key-1');
    rmSync(path);
    expect(await source.current()).toBe('key-1');
  });
});

describe('redact', () => {
  const key = 'agnt_a/b+c=d"e\\f%';

  it.each([
    ['verbatim', key],
    ['escaped in JSON', JSON.stringify(key).slice(1, -1)],
    ['percent-encoded', encodeURIComponent(key)],
    ['in base64', Buffer.from(key).toString('base64')],
    ['in base64url', Buffer.from(key).toString('base64url')],
    ['in the base64 of its header', Buffer.from(`Bearer ${key}`).toString('base64')],
    [
      'in the base64 of its header, without padding',
      Buffer.from(`Bearer ${key}`).toString('base64').replace(/=+$/, ''),
    ],
    ['in the base64url of its header', Buffer.from(`Bearer ${key}`).toString('base64url')],
  ])('hides a key %s', (_how, form) => {
    expect(redact(`a ${form}, ${form}`, [key])).toBe('a [key], [key]');
  });

  it('hides the longer of two keys whole', () => {
    expect(redact('abc-def-ghi abc-def', ['abc-def', 'abc-def-ghi'])).toBe('[key] [key]');
  });

  it('leaves a text alone where there is no key', () => {
    expect(redact('nothing here', ['', 'agnt_x'])).toBe('nothing here');
  });

  it('still hides the keys of earlier rotations', () => {
    const redactor = new KeyRedactor();
    for (let n = 10; n < 20; n += 1) redactor.remember(`rotated-${n}`);
    expect(redactor.redact('rotated-10 rotated-19')).toBe('[key] [key]');
  });
});

function thrownBy(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error('nothing was thrown');
}
