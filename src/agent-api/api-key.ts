import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { percentEncode } from '../core/ids';
import { errorFacts } from './error-facts';

/** Where the admin key comes from. It is asked before every request, so that a key can be rotated without a restart. */
export interface ApiKeySource {
  /**
   * The key to use now.
   *
   * @throws ApiKeyError when there is none; its message never holds any part of a key.
   */
  current(): Promise<string>;
}

/** Thrown when a key can't be had. The message names the variable or the file, and never shows the content. */
export class ApiKeyError extends Error {
  override readonly name = 'ApiKeyError';
}

/** No key is longer; a bigger file is a mistake (a log, an archive) and is not read into memory. */
const MAX_KEY_BYTES = 16 * 1_024;

/**
 * A key given as text, for example by the environment. Surrounding white space is removed.
 *
 * @param name what the error calls the text: the name of its variable
 * @throws ApiKeyError
 */
export function keyFromText(text: string, name = 'AGENT_API_KEY'): ApiKeySource {
  const key = checkedKey(text, name);
  return { current: () => Promise.resolve(key) };
}

/**
 * A key in a file. The first read happens here and must succeed. Every use reads the file again: it is tiny, and
 * unlike a comparison of time stamps that sees every rotation, a swapped Kubernetes symlink and a rewrite within the
 * clock's tick too. While the file can't be read or holds no key, as in the middle of a rotation, the last good key
 * stays in use.
 *
 * @throws ApiKeyError when the file can't be read now, or holds no key
 */
export function keyFromFile(path: string): ApiKeySource {
  let lastGood = readKeySync(path);
  return {
    async current() {
      try {
        lastGood = await readKey(path);
      } catch (error) {
        if (!(error instanceof ApiKeyError)) throw error;
      }
      return lastGood;
    },
  };
}

function readKeySync(path: string): string {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const stat = fstatSync(file);
    checkFile(stat, path);
    const buffer = Buffer.alloc(stat.size);
    return checkedKey(buffer.toString('latin1', 0, readSync(file, buffer)), fileName(path));
  } catch (error) {
    throw asKeyError(error, path);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

async function readKey(path: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, 'r');
    const stat = await file.stat();
    checkFile(stat, path);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(stat.size));
    return checkedKey(buffer.toString('latin1', 0, bytesRead), fileName(path));
  } catch (error) {
    throw asKeyError(error, path);
  } finally {
    await file?.close();
  }
}

function checkFile(stat: { isFile(): boolean; size: number }, path: string): void {
  // A pipe or a terminal could only be read once, and might never end.
  if (!stat.isFile()) throw new ApiKeyError(`${fileName(path)} is no regular file`);
  if (stat.size > MAX_KEY_BYTES) {
    throw new ApiKeyError(`${fileName(path)} has ${stat.size} bytes: that is no key`);
  }
}

/** Anything but visible ASCII would let the key break out of its header, or not fit into one. */
function checkedKey(text: string, name: string): string {
  const key = text.trim();
  if (key === '') throw new ApiKeyError(`${name} is empty; it must hold the admin key`);
  if (key.length > MAX_KEY_BYTES || !/^[\x21-\x7e]+$/.test(key)) {
    throw new ApiKeyError(
      `${name} must hold the admin key alone: printable ASCII characters without white space`,
    );
  }
  return key;
}

function asKeyError(error: unknown, path: string): ApiKeyError {
  if (error instanceof ApiKeyError) return error;
  const code = errorFacts(error)[0]?.label ?? 'unreadable';
  return new ApiKeyError(`${fileName(path)} can't be read: ${code}`, { cause: error });
}

function fileName(path: string): string {
  return `the key file ${JSON.stringify(path)}`;
}

const REDACTED = '[key]';

/** How many rotated keys are remembered. Only an answer to a request in flight can still hold an earlier one. */
const REMEMBERED_KEYS = 16;

/**
 * `text` without any of the keys: verbatim, and in the forms in which a service, a proxy or an error might repeat them
 * (escaped in JSON, percent-encoded, in base64). Redact before cutting: half a key would not be found.
 */
export function redact(text: string, keys: Iterable<string>): string {
  const forms = [...keys].flatMap(formsOf).sort((a, b) => b.length - a.length);
  return forms.reduce((redacted, form) => redacted.replaceAll(form, REDACTED), text);
}

/** A shorter key belongs to a test setup, and would be found by chance in any link; a real one is random and longer. */
const MIN_SECRET_CHARACTERS = 16;

/** Every key that the client has used, so that what it says after a rotation shows the earlier key no more than this one. */
export class KeyRedactor {
  private readonly keys = new Set<string>();

  remember(key: string): void {
    this.keys.delete(key);
    this.keys.add(key);
    for (const oldest of this.keys) {
      if (this.keys.size <= REMEMBERED_KEYS) break;
      this.keys.delete(oldest);
    }
  }

  readonly redact = (text: string): string => redact(text, this.keys);

  /** A body before a job is read from it: a service that mirrors its request must not bring the key into a job. */
  readonly redactBody = (body: string): string => {
    const secrets = [...this.keys].filter((key) => key.length >= MIN_SECRET_CHARACTERS);
    return redact(body, secrets);
  };
}

function formsOf(key: string): string[] {
  if (key === '') return [];
  const bytes = Buffer.from(key);
  return [
    key,
    JSON.stringify(key).slice(1, -1),
    percentEncode(key),
    encodeURIComponent(key),
    ...[bytes, Buffer.from(`Bearer ${key}`)].flatMap((each) => [
      each.toString('base64'),
      each.toString('base64').replace(/=+$/, ''),
      each.toString('base64url'),
    ]),
  ];
}
