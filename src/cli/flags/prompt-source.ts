import { createReadStream } from 'node:fs';
import { MAX_PROMPT_BYTES } from '../../core/text';
import { UsageError } from '../exit-codes';

export interface PromptFlags {
  readonly prompt?: string;
  readonly promptFile?: string;
}

/**
 * The message, unaltered: the last line break and the byte order mark of a file are part of it.
 *
 * @param stdin what `--prompt-file -` reads
 * @returns undefined where neither flag is given
 * @throws UsageError when both are given, or when the file can't be read, is empty, too large, or not UTF-8
 */
export async function readPrompt(
  { prompt, promptFile }: PromptFlags,
  stdin: AsyncIterable<Uint8Array>,
): Promise<string | undefined> {
  if (prompt !== undefined && promptFile !== undefined) {
    throw new UsageError(['--prompt, --prompt-file: give one of the two, not both']);
  }
  if (prompt !== undefined) return prompt;
  if (promptFile === undefined) return undefined;
  const bytes = await readBounded(promptFile === '-' ? stdin : createReadStream(promptFile), promptFile);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError([`--prompt-file: ${nameOf(promptFile)} is not UTF-8; the message is sent as UTF-8`]);
  }
}

async function readBounded(source: AsyncIterable<Uint8Array>, file: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of source) {
      size += chunk.length;
      if (size > MAX_PROMPT_BYTES) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw new UsageError([`--prompt-file: ${nameOf(file)} can't be read (${reasonOf(error)})`]);
  }
  if (size > MAX_PROMPT_BYTES) {
    throw new UsageError([
      `--prompt-file: ${nameOf(file)} holds more than ${MAX_PROMPT_BYTES} bytes, the maximum of a prompt`,
    ]);
  }
  if (size === 0)
    throw new UsageError([`--prompt-file: ${nameOf(file)} is empty; a message has 1 character or more`]);
  return Buffer.concat(chunks);
}

export function nameOf(file: string): string {
  return file === '-' ? 'stdin' : JSON.stringify(file);
}

/** Why a file can't be read, in words. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return (
    { ENOENT: 'no such file', EISDIR: 'it is a folder', EACCES: 'permission denied' }[code ?? ''] ?? message
  );
}
