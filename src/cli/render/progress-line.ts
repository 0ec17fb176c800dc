import { truncate } from '../../contract/text';
import type { Environment } from '../../temporal/connection-config';
import { printable } from './text';

export interface OutputStream {
  write(text: string): unknown;
  once?(event: 'error', listener: () => void): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const CLEAR_LINE = '\r\u001b[2K';

/** The time after which a missing response is shown. A worker that has just started, or that replays a long history, needs this time. */
const STALL_THRESHOLD_MS = 4_000;

/** Shows the progress in one line that is rewritten on a terminal. Elsewhere, every change is a new line. */
export class ProgressLine {
  private readonly isLive: boolean;
  private shownText = '';
  private lastShownAtMs = performance.now();

  constructor(
    private readonly stream: OutputStream,
    env: Environment,
  ) {
    this.isLive = stream.isTTY === true && env.TERM !== 'dumb';
  }

  /** Shows the progress. @param key if lines can't be rewritten, a new line is written only if the key has changed */
  show(text: string, key: string): void {
    this.lastShownAtMs = performance.now();
    this.write(text, key);
  }

  /** Shows the text if no progress was shown for {@link STALL_THRESHOLD_MS}. */
  showIfStalled(text: string): void {
    if (performance.now() - this.lastShownAtMs > STALL_THRESHOLD_MS) this.write(text, text);
  }

  /** Removes the line, so that other lines can be written. */
  clear(): void {
    if (!this.isLive || this.shownText === '') return;
    this.stream.write(CLEAR_LINE);
    this.shownText = '';
  }

  private write(text: string, key: string): void {
    const { isLive, stream } = this;
    // Some terminals wrap a line that has their full width, and such a line could not be cleared as one line.
    const line = truncate(printable(text), isLive ? Math.max(10, (stream.columns ?? 80) - 1) : Infinity);
    const shown = isLive ? line : key;
    if (this.shownText === shown) return;
    this.shownText = shown;
    stream.write(isLive ? CLEAR_LINE + line : `${new Date().toISOString().slice(11, 19)}Z ${line}\n`);
  }
}
