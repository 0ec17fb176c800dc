import { constants, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { formatDuration } from '../core/units';
import { errorFacts } from './error-facts';
import { MIN_SECRET_CHARACTERS } from './redaction';

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

/** A file answers within milliseconds; a mount that takes longer hangs. */
const FILE_LIMIT_MS = 2_000;

/**
 * A key in a file. The first read happens here and must succeed. Every use reads the file again: it is tiny, and
 * unlike a comparison of time stamps that sees every rotation, a swapped Kubernetes symlink and a rewrite within the
 * clock's tick too. While the file can't be read or holds no key, as in the middle of a rotation, the last good key
 * stays in use.
 *
 * At most one read is under way, because one that hangs occupies one of the four threads with which Node reads files and
 * looks up names. For longer than two seconds nobody waits for it.
 *
 * @throws ApiKeyError when the file can't be read now, or holds no key
 */
export async function keyFromFile(path: string): Promise<ApiKeySource> {
  const readInTime = oneAtATime(
    () => readKey(path),
    FILE_LIMIT_MS,
    () => {
      const limit = formatDuration(FILE_LIMIT_MS);
      return new ApiKeyError(`${fileName(path)} can't be read within ${limit}; its mount may hang`);
    },
  );
  let lastGood = await readInTime();
  return {
    async current() {
      try {
        lastGood = await readInTime();
      } catch (error) {
        if (!(error instanceof ApiKeyError)) throw error;
      }
      return lastGood;
    },
  };
}

/** Everybody who asks while `work` is under way gets its result, or the error once `limitMs` have passed since it began. */
function oneAtATime<T>(work: () => Promise<T>, limitMs: number, tooLate: () => Error): () => Promise<T> {
  let inTime: Promise<T> | undefined;
  return () => {
    if (inTime !== undefined) return inTime;
    const result = work();
    let timer: NodeJS.Timeout;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(tooLate());
      }, limitMs);
    });
    inTime = Promise.race([result, late]);
    const end = () => {
      clearTimeout(timer);
      inTime = undefined;
    };
    result.then(end, end);
    return inTime;
  };
}

async function readKey(path: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe waits for somebody to write into it.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
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

function checkFile(stat: Stats, path: string): void {
  if (stat.isFIFO()) {
    throw new ApiKeyError(
      `${fileName(path)} is a pipe, as <(…) makes one: it can't be read again when the key is rotated; give a regular file`,
    );
  }
  if (!stat.isFile()) throw new ApiKeyError(`${fileName(path)} is not a regular file`);
  if (stat.size > MAX_KEY_BYTES) {
    throw new ApiKeyError(`${fileName(path)} has ${stat.size} bytes, more than a key can have`);
  }
}

/**
 * The key in `text`. Anything but visible ASCII would let it break out of its header, or not fit into one.
 *
 * @param name what the error calls the text
 * @throws ApiKeyError, which shows nothing of the text
 */
export function checkedKey(text: string, name: string): string {
  const key = text.trim();
  if (key === '') throw new ApiKeyError(`${name} is empty; it must hold the admin key`);
  if (key.length > MAX_KEY_BYTES || !/^[\x21-\x7e]+$/.test(key)) {
    throw new ApiKeyError(
      `${name} must hold the admin key alone: printable ASCII characters without white space`,
    );
  }
  if (key.length < MIN_SECRET_CHARACTERS) {
    throw new ApiKeyError(
      `${name} holds ${key.length} characters; a key has at least ${MIN_SECRET_CHARACTERS}, so that it can be told from ` +
        'other text and removed from every message',
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
