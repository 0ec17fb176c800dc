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
    const lines = this.text.split('\n').map((line) => line.trimEnd());
    return lines
      .filter((line) => line !== '')
      .slice(-count)
      .join('\n');
  }
}
