import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { formatDuration } from '../contract/duration';
import { failureFromError } from './failure-from-error';
import { canBeRedacted, MIN_SECRET_CHARACTERS } from './redaction';

/** The source of a secret: the API key of the agent service, or the signing secrets of notifications. */
export interface SecretSource {
  /** Returns the current secret. @throws SecretError, whose message never contains any part of a secret */
  current(): Promise<string>;
}

/** Thrown when a secret can't be read or is invalid. */
export class SecretError extends Error {
  override readonly name = 'SecretError';

  constructor(
    holder: string,
    readonly problem: string,
    options?: ErrorOptions,
  ) {
    super(`${holder} ${problem}`, options);
  }
}

/** The maximum length of a secret, so that a large file is not read into memory. */
const MAX_SECRET_CHARACTERS = 16_384;

/** Only visible ASCII is allowed, because other characters could end the header. */
const SECRET = new RegExp(`^[\\x21-\\x7e]{1,${MAX_SECRET_CHARACTERS}}$`);

/** The text names no kind of secret, because a source can also return the signing secrets of notifications. */
const SECRET_FORM = `only the secret: printable ASCII without white space, with at least ${MIN_SECRET_CHARACTERS} letters and digits`;

/** Checks a secret. @throws SecretError, whose message has the `name` of the text but not the text */
export function parseSecret(text: string, name: string): string {
  const secret = text.trim();
  if (SECRET.test(secret) && canBeRedacted(secret)) return secret;
  throw new SecretError(name, `${secret === '' ? 'is empty; it ' : ''}must contain ${SECRET_FORM}`);
}

/**
 * Returns a source with a constant secret: the API key, or the signing secrets of notifications.
 *
 * @throws SecretError if the text is not a valid secret
 */
export function keyFromText(text: string): SecretSource {
  const secret = parseSecret(text, 'the text that keyFromText received');
  return { current: () => Promise.resolve(secret) };
}

/** A file is normally read within milliseconds. If a read takes longer than this, the mount of the file probably hangs. */
const FILE_READ_TIMEOUT_MS = 2_000;

interface KeyFileOptions {
  /**
   * Returns the secret in the file's text. @throws SecretError without any part of the text
   *
   * @default the text without surrounding white space, which must be printable ASCII
   */
  readonly parse?: (text: string, name: string) => string;
  /**
   * Called with the problem, once for each change of the file after which the file can't be used. Called with undefined when the
   * file can be used again. The problem contains no part of the file.
   */
  readonly onProblem?: (problem: string | undefined) => void;
}

/**
 * Returns a source that reads a secret from a file: the API key, or the signing secrets of notifications. The file is read for
 * every request, because timestamps do not show that Kubernetes replaced a symlink. While the file can't be read or has no valid
 * secret, the last valid secret is used. At most one read is in progress, because a read that hangs occupies one of the four
 * threads that Node uses to read files and resolve host names.
 *
 * @throws SecretError if the file can't be read at the start or has no valid secret
 */
export async function keyFromFile(
  path: string,
  { parse = parseSecret, onProblem = () => undefined }: KeyFileOptions = {},
): Promise<SecretSource> {
  const name = `the secret file ${JSON.stringify(path)}`;
  const readInTime = createSingleRead(path, name);
  let lastValidSecret = parse(await readInTime(), name);
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
        lastValidSecret = parse(text, name);
        report(undefined, text);
      } catch (error) {
        if (!(error instanceof SecretError)) throw error;
        report(error.problem, text);
      }
      return lastValidSecret;
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
        reject(new SecretError(name, `can't be read within ${limit}; its mount may hang`));
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
      throw new SecretError(name, "is not a regular file, so it can't be read for each request");
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_SECRET_CHARACTERS + 1));
    return buffer.toString('latin1', 0, bytesRead);
  } catch (error) {
    if (error instanceof SecretError) throw error;
    throw new SecretError(
      name,
      `can't be read: ${failureFromError(error).label}; set it to the path of a readable file`,
      { cause: error },
    );
  } finally {
    // The text is known or the error is reported, so a file that can't be closed changes nothing.
    await file?.close().catch(() => undefined);
  }
}
