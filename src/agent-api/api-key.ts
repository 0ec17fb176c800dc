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
export function parseApiKey(text: string, name: string): string {
  const key = text.trim();
  if (KEY.test(key) && canBeRedacted(key)) return key;
  throw new ApiKeyError(name, `${key === '' ? 'is empty; it ' : ''}must contain ${ADMIN_KEY}`);
}

/** Returns a source with a constant key. @throws ApiKeyError if the text is not a valid key */
export function keyFromText(text: string): ApiKeySource {
  const key = parseApiKey(text, 'AGENT_API_KEY');
  return { current: () => Promise.resolve(key) };
}

/** A file is normally read within milliseconds. If a read takes longer than this, the mount of the file probably hangs. */
const FILE_READ_TIMEOUT_MS = 2_000;

interface KeyFileOptions {
  /** Returns the secret in the file's text. @throws ApiKeyError without any part of the text. @default the admin key */
  readonly parse?: (text: string, name: string) => string;
  /**
   * Called once for each change of the file after which the file can't be used, with a text that has no part of the file, and with
   * undefined when the file can be used again.
   */
  readonly onProblem?: (problem: string | undefined) => void;
}

/**
 * Reads the key from a file for every request, because timestamps do not show that Kubernetes replaced a symlink. While the file
 * can't be read or has no key, the last valid key is used. At most one read is in progress, because a read that hangs occupies
 * one of the four threads that Node uses to read files and resolve host names.
 *
 * @throws ApiKeyError if the file can't be read at the start or has no key
 */
export async function keyFromFile(
  path: string,
  { parse = parseApiKey, onProblem = () => undefined }: KeyFileOptions = {},
): Promise<ApiKeySource> {
  const name = `the key file ${JSON.stringify(path)}`;
  const readInTime = createSingleRead(path, name);
  let lastValidKey = parse(await readInTime(), name);
  /** The problem that was reported last, with the text of the file. The text changes with each change of the file. */
  let reported: string | undefined;
  const report = (problem: string | undefined, text: string) => {
    const next = problem === undefined ? undefined : `${problem}\n${text}`;
    if (next === reported) return;
    reported = next;
    onProblem(problem);
  };
  return {
    async current() {
      let text = '';
      try {
        text = await readInTime();
        lastValidKey = parse(text, name);
        report(undefined, text);
      } catch (error) {
        if (!(error instanceof ApiKeyError)) throw error;
        report(error.problem, text);
      }
      return lastValidKey;
    },
  };
}

/** Returns a function that reads a file within {@link FILE_READ_TIMEOUT_MS}. Calls during a read wait for the same read. */
function createSingleRead(path: string, name: string): () => Promise<string> {
  let pendingRead: Promise<string> | undefined;
  return () => {
    pendingRead ??= new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const limit = formatDuration(FILE_READ_TIMEOUT_MS);
        reject(new ApiKeyError(name, `can't be read within ${limit}; its mount may hang`));
      }, FILE_READ_TIMEOUT_MS);
      const end = () => {
        clearTimeout(timer);
        pendingRead = undefined;
      };
      readText(path, name).finally(end).then(resolve, reject);
    });
    return pendingRead;
  };
}

async function readText(path: string, name: string): Promise<string> {
  let file: FileHandle | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile())
      throw new ApiKeyError(name, "is not a regular file, so it can't be read for each request");
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_KEY_CHARACTERS + 1));
    return buffer.toString('latin1', 0, bytesRead);
  } catch (error) {
    if (error instanceof ApiKeyError) throw error;
    throw new ApiKeyError(name, `can't be read: ${failureFromError(error).label}`, { cause: error });
  } finally {
    // The text is known or the error is reported, so a file that can't be closed changes nothing.
    await file?.close().catch(() => undefined);
  }
}
