import { formatDuration } from '../../core/units';
import type { OutputStream } from './output';
import { fitColumns, printable } from './text';

const CLEAR_LINE = '\r\u001b[2K';

/**
 * Where the progress of a follow-up or a batch is shown: one line that is rewritten on a terminal, a line for each change
 * elsewhere.
 */
export interface ProgressLine {
  /** @param key what counts as a change where lines can't be rewritten */
  show(text: string, key: string): void;
  /** Removes the live line, so that other lines can be written. */
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
    // Some terminals wrap a line of their full width, which could not be cleared as one line.
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

/** The window of the rate: long enough for turns of minutes, short enough to show a change. */
const WINDOW_MS = 3 * 60_000;

/** A rate over a shorter span means nothing. */
const MIN_SPAN_MS = 5_000;

/** Wide enough to see a twentieth, short enough to leave room for the counts. */
const BAR_COLUMNS = 20;

/** How far many items are, and how fast they settle. Times are milliseconds since the epoch. */
export class Meter {
  private readonly samples: { readonly at: number; readonly settled: number }[] = [];

  /** @returns `█████░░░░░░░░░░░░░░░ 50 of 200 · 25 % · 75/min · 2m left` */
  show(settled: number, items: number, now: number): string {
    this.samples.push({ at: now, settled });
    while ((this.samples[0]?.at ?? now) < now - WINDOW_MS) this.samples.shift();
    const share = items === 0 ? 1 : settled / items;
    const done = Math.floor(share * BAR_COLUMNS);
    const bar = '█'.repeat(done) + '░'.repeat(BAR_COLUMNS - done);
    // Rounded down: 100 % is the end.
    return [
      `${bar} ${settled} of ${items}`,
      `${Math.floor(share * 100)} %`,
      ...this.speed(items - settled),
    ].join(' · ');
  }

  private speed(left: number): string[] {
    const first = this.samples[0];
    const last = this.samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < MIN_SPAN_MS) return [];
    const perMinute = ((last.settled - first.settled) * 60_000) / (last.at - first.at);
    const rate = `${perMinute < 10 ? perMinute.toFixed(1) : Math.round(perMinute)}/min`;
    if (perMinute === 0 || left === 0) return [rate];
    return [rate, `${formatDuration(Math.ceil((left * 60) / perMinute) * 1_000)} left`];
  }
}
