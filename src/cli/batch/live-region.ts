import type { OutputStream } from '../output';
import { widthOf } from '../printable';
import type { ScreenSize } from './frame';

/** Where a terminal does not tell its size (VT100). */
const USUAL_SIZE: ScreenSize = { columns: 80, rows: 24 };

export function sizeOf({ columns, rows }: OutputStream): ScreenSize {
  return { columns: columns ?? USUAL_SIZE.columns, rows: rows ?? USUAL_SIZE.rows };
}

/** The last lines of a terminal, rewritten in place. */
export class LiveRegion {
  private shown: readonly string[] = [];

  constructor(private readonly stream: OutputStream) {}

  /** @param lines narrower than the terminal, and fewer than it has */
  show(lines: readonly string[]): void {
    // In one piece, so that nothing flickers.
    this.stream.write(this.erasure() + lines.join('\n'));
    this.shown = lines;
  }

  /** Removes the lines, so that others can be written. */
  clear(): void {
    if (this.shown.length > 0) this.stream.write(this.erasure());
    this.shown = [];
  }

  /** Moves to the first line, and clears from there to the end of the screen. */
  private erasure(): string {
    if (this.shown.length === 0) return '';
    const { columns, rows } = sizeOf(this.stream);
    // A terminal that was made narrower has wrapped them by now.
    const height = this.shown.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0);
    const up = Math.min(height, rows) - 1;
    return `\r${up > 0 ? `\u001b[${up}A` : ''}\u001b[0J`;
  }
}
