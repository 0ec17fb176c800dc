import path from 'node:path';
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import type { ProblemList } from '../../client/batch/items';
import { UsageError } from '../exit-codes';
import { nameOf, reasonOf } from '../flags/prompt-source';

export const FORMATS = ['jsonl', 'csv'] as const;

export type Format = (typeof FORMATS)[number];

const EXTENSIONS: Readonly<Record<string, Format>> = { '.jsonl': 'jsonl', '.ndjson': 'jsonl', '.csv': 'csv' };

/**
 * The format of `--format`, or of the file's name; undefined if the content must decide.
 *
 * @throws UsageError when `--format` is not a format
 */
export function formatByName(file: string, asked: string | undefined): Format | undefined {
  if (asked === undefined) return EXTENSIONS[path.extname(file).toLowerCase()];
  const format = FORMATS.find((known) => known === asked);
  if (format === undefined) {
    throw new UsageError([`--format: must be ${FORMATS.join(' or ')}; it is ${JSON.stringify(asked)}`]);
  }
  return format;
}

/** JSON begins with a brace or a bracket, and no column's name does; undefined while there is only white space. */
export function formatByContent({ bytes }: LineBlock): Format | undefined {
  const first = /\S/.exec(bytes.toString())?.[0];
  if (first === undefined) return undefined;
  return first === '{' || first === '[' ? 'jsonl' : 'csv';
}

/** Reports each line that is not UTF-8: a decoder would replace parts of the message. */
export function checkEncoding({ firstLine, bytes }: LineBlock, problems: ProblemList): void {
  if (isUtf8(bytes)) return;
  let start = 0;
  for (let line = firstLine; start < bytes.length; line += 1) {
    const lineFeed = bytes.indexOf('\n', start);
    const end = lineFeed < 0 ? bytes.length : lineFeed + 1;
    if (!isUtf8(bytes.subarray(start, end))) {
      problems.add(line, 'is not UTF-8; save the file as UTF-8');
    }
    start = end;
  }
}

/** Some whole lines of the input, each with its line break; the last line of all may lack it. */
export interface LineBlock {
  /** The number of the first line, from 1. */
  readonly firstLine: number;
  readonly bytes: Buffer;
}

/** Bytes that a batch's input may have: its items are held in memory until they are handed over. */
export const MAX_INPUT_BYTES = 1_024 * 1_024 * 1_024;

/** Bytes of one line: the largest prompt takes 1.5 MiB if each of its bytes is escaped with six. */
export const MAX_LINE_BYTES = 4 * 1_024 * 1_024;

const LINE_FEED = 0x0a;

const BYTE_ORDER_MARK = Buffer.from('\ufeff');

/**
 * Reads a file, or stdin for `-`, in blocks of whole lines, without a byte order mark at its beginning.
 *
 * @throws UsageError when it can't be read, is too large, or has a line that is too long for an item
 */
export async function* lineBlocks(
  file: string,
  stdin: AsyncIterable<Uint8Array>,
): AsyncGenerator<LineBlock, void, undefined> {
  let firstLine = 1;
  let size = 0;
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  const block = (): LineBlock => {
    const bytes = Buffer.concat(pending);
    const isMarked = firstLine === 1 && bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
    return { firstLine, bytes: isMarked ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes };
  };
  for await (const chunk of readable(file, stdin)) {
    size += chunk.length;
    if (size > MAX_INPUT_BYTES) {
      throw new UsageError([`${nameOf(file)} is larger than ${MAX_INPUT_BYTES / 2 ** 30} GiB; split it`]);
    }
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      pending.push(chunk.subarray(0, end));
      const next = block();
      yield next;
      firstLine += countLineFeeds(next.bytes);
      pending = [];
      pendingBytes = 0;
    }
    pending.push(chunk.subarray(end));
    pendingBytes += chunk.length - end;
    if (pendingBytes > MAX_LINE_BYTES) {
      throw new UsageError([
        `line ${firstLine}: is longer than ${MAX_LINE_BYTES / 2 ** 20} MiB, the maximum of an item; the rest was not read`,
      ]);
    }
  }
  if (pendingBytes > 0) yield block();
}

function countLineFeeds(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) count += 1;
  return count;
}

/** The bytes of a file or of stdin; file system errors become usage errors. */
async function* readable(
  file: string,
  stdin: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* file === '-' ? stdin : (createReadStream(file) as AsyncIterable<Uint8Array>);
  } catch (error) {
    throw new UsageError([`${nameOf(file)} can't be read (${reasonOf(error)})`]);
  }
}
