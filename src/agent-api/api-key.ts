import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { formatDuration } from '../contract/duration';
import { failureFromError } from './failure-from-error';
import { canBeRedacted, MIN_SECRET_CHARACTERS } from './redaction';

/** The source of a secret: the API key of the agent service, or the signing secrets of notifications. */
export interface ApiKeySource {
  /** Returns the current secret. @throws ApiKeyError, whose message never contains any part of a secret */
  current(): Promise<string>;
}

/** Thrown when the API key or the signing secrets can't be read or are invalid. */
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

/** The maximum length of a key, so that a large file is not read into memory. */
const MAX_KEY_CHARACTERS = 16_384;

/** Only visible ASCII is allowed, because other characters could end the header. */
const KEY = new RegExp(`^[\\x21-\\x7e]{1,${MAX_KEY_CHARACTERS}}$`);

const ADMIN_KEY = `only the admin key: printable ASCII without white space, with at least ${MIN_SECRET_CHARACTERS} letters and digits`;

/** Checks a key. @throws ApiKeyError, whose message has the `name` of the text but not the text */
export function parseApiKey(text: string, name: string, expectation = ADMIN_KEY): string {
  const key = text.trim();
  if (KEY.test(key) && canBeRedacted(key)) return key;
  throw new ApiKeyError(name, `must contain ${expectation}`);
}

/** Returns a source with a constant key. @throws ApiKeyError if the text is not a valid key */
export function keyFromText(text: string): ApiKeySource {
  const key = parseApiKey(text, 'AGENT_API_KEY');
  return { current: () => Promise.resolve(key) };
}

/** A file is normally read within milliseconds. If a read takes longer than this, the mount of the file probably hangs. */
const FILE_READ_TIMEOUT_MS = 2_000;

/**
 * Reads the key from a file for every request, because timestamps do not show that Kubernetes replaced a symlink. While the file
 * can't be read or has no key, the last valid key is used. At most one read is in progress, because a read that hangs occupies
 * one of the four threads that Node uses to read files and resolve host names.
 *
 * @param expectation the description of valid content for errors. @default the admin key
 * @throws ApiKeyError if the file can't be read at the start or has no key
 */
export async function keyFromFile(path: string, expectation?: string): Promise<ApiKeySource> {
  const name = `the key file ${JSON.stringify(path)}`;
  let pendingRead: Promise<string> | undefined;
  const readInTime = (): Promise<string> => {
    pendingRead ??= new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const limit = formatDuration(FILE_READ_TIMEOUT_MS);
        reject(new ApiKeyError(name, `can't be read within ${limit}; its mount may hang`));
      }, FILE_READ_TIMEOUT_MS);
      const end = () => {
        clearTimeout(timer);
        pendingRead = undefined;
      };
      readKey(path, name, expectation).finally(end).then(resolve, reject);
    });
    return pendingRead;
  };
  let lastValidKey = await readInTime();
  return {
    async current() {
      try {
        lastValidKey = await readInTime();
      } catch (error) {
        if (!(error instanceof ApiKeyError)) throw error;
      }
      return lastValidKey;
    },
  };
}

async function readKey(path: string, name: string, expectation?: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile())
      throw new ApiKeyError(name, "is not a regular file, so it can't be read for each request");
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_KEY_CHARACTERS + 1));
    return parseApiKey(buffer.toString('latin1', 0, bytesRead), name, expectation);
  } catch (error) {
    if (error instanceof ApiKeyError) throw error;
    throw new ApiKeyError(name, `can't be read: ${failureFromError(error).label}`, { cause: error });
  } finally {
    await file?.close();
  }
}
