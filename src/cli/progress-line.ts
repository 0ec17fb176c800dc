import type { OutputStream } from './output';
import { fitColumns, printable } from './printable';

const CLEAR_LINE = '\r\u001b[2K';

/** Where progress is shown: a line that is rewritten on a terminal, a line for each change elsewhere. */
export interface ProgressLine {
  /** @param key what counts as a change where lines can't be rewritten */
  show(text: string, key: string): void;
  /** Removes what is to be rewritten, so that other lines can be written. */
  clear(): void;
}

export function progressLine(
  stream: OutputStream,
  env: Readonly<Record<string, string | undefined>>,
): ProgressLine {
  return stream.isTTY === true && env.TERM !== 'dumb' ? new LiveLine(stream) : new PlainLines(stream);
}

class LiveLine implements ProgressLine {
  private shown = '';

  constructor(private readonly stream: OutputStream) {}

  show(text: string): void {
    // A line as wide as the terminal would wrap on some, and could not be cleared as one.
    const line = fitColumns(printable(text), Math.max(10, (this.stream.columns ?? 80) - 1));
    if (line === this.shown) return;
    this.stream.write(CLEAR_LINE + line);
    this.shown = line;
  }

  clear(): void {
    if (this.shown !== '') this.stream.write(CLEAR_LINE);
    this.shown = '';
  }
}

class PlainLines implements ProgressLine {
  private lastKey: string | undefined;

  constructor(private readonly stream: OutputStream) {}

  show(text: string, key: string): void {
    if (key === this.lastKey) return;
    this.lastKey = key;
    const time = new Date().toISOString().slice(11, 19);
    this.stream.write(`${time}Z ${printable(text)}\n`);
  }

  clear(): void {
    // Every line stays.
  }
}
