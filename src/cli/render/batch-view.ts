import type { BatchProgress, ItemEnd } from '../../client';
import { isFailure } from '../../core/batch';
import { drawBatch, Rate, rateText, type ScreenSize, timeLeft } from './batch-frame';
import { countWords, outcomeText } from './batch-text';
import type { OutputStream } from './output';
import { printable, widthOf } from './text';

/** The view of a running batch. Times are milliseconds since the epoch. */
interface BatchView {
  /** @param ends what has settled since the last call */
  show(progress: BatchProgress, ends: readonly ItemEnd[], now: number): void;
  /** @param trouble why there is nothing new, in words */
  showTrouble(trouble: string, now: number): void;
  /** @param ends what has settled since the last call; there is none after it */
  showLast(ends: readonly ItemEnd[], now: number): void;
  /** Removes the live lines, so that other lines can be written. */
  clear(): void;
}

export function batchView(
  stream: OutputStream,
  env: Readonly<Record<string, string | undefined>>,
): BatchView {
  return stream.isTTY === true && env.TERM !== 'dumb' ? new LiveView(stream) : new PlainView(stream);
}

/** More would push the numbers off the screen. */
const MAX_EVENTS = 8;

/** On a terminal: lines that are rewritten in place. */
class LiveView implements BatchView {
  private readonly region: LiveRegion;
  private readonly rate = new Rate();
  private readonly events: ItemEnd[] = [];
  private progress: BatchProgress | null = null;

  constructor(private readonly stream: OutputStream) {
    this.region = new LiveRegion(stream);
  }

  show(progress: BatchProgress, ends: readonly ItemEnd[], now: number): void {
    this.progress = progress;
    this.rate.add(now, progress.settled);
    this.events.push(...ends.slice(-MAX_EVENTS));
    this.events.splice(0, this.events.length - MAX_EVENTS);
    this.draw(null, now);
  }

  showTrouble(trouble: string, now: number): void {
    this.draw(trouble, now);
  }

  showLast(): void {
    // The summary takes its place.
    this.clear();
  }

  clear(): void {
    this.region.clear();
  }

  private draw(trouble: string | null, now: number): void {
    const { progress, events } = this;
    const picture = { progress, trouble, perMinute: this.rate.perMinute(), events };
    this.region.show(drawBatch(picture, sizeOf(this.stream), now));
  }
}

/** How often a line with nothing but new numbers is printed at most. */
const LINE_EVERY_MS = 10_000;

/** Elsewhere: a line for each failure, and a line with the progress now and then. */
class PlainView implements BatchView {
  private readonly rate = new Rate();
  private lastText = '';
  private lastState = '';
  private lastAt = -Infinity;

  constructor(private readonly stream: OutputStream) {}

  show(progress: BatchProgress, ends: readonly ItemEnd[], now: number): void {
    const { state, settled, items } = progress;
    this.rate.add(now, settled);
    this.tellFailures(ends, now);
    const text = [state, `${settled} of ${items} settled`, ...countWords(progress)].join(' · ');
    if (state === this.lastState && (text === this.lastText || now - this.lastAt < LINE_EVERY_MS)) return;
    this.lastState = state;
    this.say(text, now, this.speed(progress));
  }

  showTrouble(trouble: string, now: number): void {
    if (trouble !== this.lastText) this.say(trouble, now);
  }

  showLast(ends: readonly ItemEnd[], now: number): void {
    this.tellFailures(ends, now);
  }

  clear(): void {
    // Every line stays.
  }

  private tellFailures(ends: readonly ItemEnd[], now: number): void {
    for (const end of ends.filter(isFailure)) {
      const { projectId, jobId, outcome } = end;
      const words = [outcome, `${projectId}/${jobId}`, outcomeText(end)].filter((word) => word !== '');
      this.write(words.join('  '), now);
    }
  }

  private speed({ items, settled, state }: BatchProgress): string {
    const perMinute = this.rate.perMinute();
    const left = timeLeft(items - settled, perMinute);
    return perMinute === null || left === null || state !== 'running'
      ? ''
      : ` · ${rateText(perMinute)} · ${left}`;
  }

  private say(text: string, now: number, more = ''): void {
    this.lastText = text;
    this.lastAt = now;
    this.write(text + more, now);
  }

  private write(text: string, now: number): void {
    this.stream.write(`${new Date(now).toISOString().slice(11, 19)}Z ${printable(text)}\n`);
  }
}

/** If a terminal does not report its size (VT100). */
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
