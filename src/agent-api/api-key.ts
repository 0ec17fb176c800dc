import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { formatDuration } from '../core/units';
import { errorTrouble } from './trouble';
import { MIN_SECRET_CHARACTERS } from './redaction';

export interface ApiKeySource {
  /** @throws ApiKeyError, which never holds any part of a key */
  current(): Promise<string>;
}

export class ApiKeyError extends Error {
  override readonly name = 'ApiKeyError';

  constructor(
    holder: string,
    readonly problem: string,
    options?: ErrorOptions,
  ) {
    super(`${holder} ${problem}`, options);
  }
}

/** No key is longer; more of a file is not read into memory. */
const MAX_KEY_CHARACTERS = 16_384;

/** Anything but visible ASCII would let a key break out of its header; a shorter one can't be hidden. */
const KEY = new RegExp(`^[\\x21-\\x7e]{${MIN_SECRET_CHARACTERS},${MAX_KEY_CHARACTERS}}$`);

const ADMIN_KEY = `the admin key alone: at least ${MIN_SECRET_CHARACTERS} printable ASCII characters without white space`;

/** @throws ApiKeyError, which shows only the `name` of the text */
export function checkedKey(text: string, name: string, right = ADMIN_KEY): string {
  const key = text.trim();
  if (KEY.test(key)) return key;
  throw new ApiKeyError(name, `must hold ${right}`);
}

/** @throws ApiKeyError */
export function keyFromText(text: string): ApiKeySource {
  const key = checkedKey(text, 'AGENT_API_KEY');
  return { current: () => Promise.resolve(key) };
}

/** A file answers within milliseconds; a mount that takes longer hangs. */
const FILE_LIMIT_MS = 2_000;

/**
 * A key in a file. Every use reads it again: unlike time stamps, that shows a swapped Kubernetes symlink. While it can't be read
 * or holds no key, the last good one stays in use. At most one read is under way: one that hangs occupies one of the four
 * threads with which Node reads files and finds hosts.
 *
 * @param right what must be in it. @default the admin key
 * @throws ApiKeyError when the file can't be read now, or holds no key
 */
export async function keyFromFile(path: string, right?: string): Promise<ApiKeySource> {
  const name = `the key file ${JSON.stringify(path)}`;
  let underWay: Promise<string> | undefined;
  const readInTime = (): Promise<string> => {
    underWay ??= new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const limit = formatDuration(FILE_LIMIT_MS);
        reject(new ApiKeyError(name, `can't be read within ${limit}; its mount may hang`));
      }, FILE_LIMIT_MS);
      const end = () => {
        clearTimeout(timer);
        underWay = undefined;
      };
      readKey(path, name, right).finally(end).then(resolve, reject);
    });
    return underWay;
  };
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

async function readKey(path: string, name: string, right?: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe waits for somebody to write into it.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile())
      throw new ApiKeyError(name, "is not a regular file, so it can't be read at each rotation");
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_KEY_CHARACTERS + 1));
    return checkedKey(buffer.toString('latin1', 0, bytesRead), name, right);
  } catch (error) {
    if (error instanceof ApiKeyError) throw error;
    throw new ApiKeyError(name, `can't be read: ${errorTrouble(error).label}`, { cause: error });
  } finally {
    await file?.close();
  }
}
