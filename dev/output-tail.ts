import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';

/** Enough for the last words of a program that dies, and bounded however much it has written before. */
const TAIL_CHARACTERS = 4_096;

/** Reads a program's output to its end and keeps the last 4 KiB: a pipe that nobody reads would block the program. */
export class OutputTail {
  private text = '';

  constructor(...outputs: readonly (Readable | null)[]) {
    for (const output of outputs) {
      output?.setEncoding('utf8').on('data', (chunk: string) => {
        this.text = (this.text + chunk).slice(-TAIL_CHARACTERS);
      });
    }
  }

  /** The last `count` lines that are not empty. */
  lines(count: number): string {
    return lastLines(this.text, count);
  }
}

/** The last `count` lines of the last 4 KiB of a file; none where it can't be read. */
export async function lastLinesOf(file: string, count: number): Promise<string> {
  const handle = await open(file).catch(() => null);
  if (handle === null) return '';
  try {
    const { size } = await handle.stat();
    const { buffer, bytesRead } = await handle.read({
      buffer: Buffer.alloc(TAIL_CHARACTERS),
      position: Math.max(0, size - TAIL_CHARACTERS),
    });
    return lastLines(buffer.toString('utf8', 0, bytesRead), count);
  } finally {
    await handle.close();
  }
}

function lastLines(text: string, count: number): string {
  const lines = text.split('\n').map((line) => line.trimEnd());
  return lines
    .filter((line) => line !== '')
    .slice(-count)
    .join('\n');
}
