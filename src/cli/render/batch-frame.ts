import type { BatchProgress, ItemEnd } from '../../client';
import { formatDuration } from '../../core/units';
import { countWords, OUTCOME_COLUMNS, outcomeText } from './batch-text';
import { fitColumns, printable, widthOf } from './text';

/** What a live view shows of a batch. */
export interface BatchPicture {
  /** Null until the first answer. */
  readonly progress: BatchProgress | null;
  /** Why `progress` is not up to date; null while it is. */
  readonly trouble: string | null;
  /** Items that settled in a minute. */
  readonly perMinute: number | null;
  /** The last ends, the newest last. */
  readonly events: readonly ItemEnd[];
}

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

/** A wider bar shows no more. */
const MAX_BAR_COLUMNS = 40;
/** A shorter one shows nothing. */
const MIN_BAR_COLUMNS = 8;

const SEPARATOR = ' · ';

/**
 * The lines of a live view: none as wide as the screen, where some terminals would wrap it, and fewer than the screen has.
 * On a small screen the most important lines stay.
 *
 * @param now milliseconds since the epoch
 */
export function drawBatch(picture: BatchPicture, screen: ScreenSize, now: number): string[] {
  const { progress, trouble, events } = picture;
  const columns = Math.max(1, screen.columns - 1);
  const room = Math.max(1, screen.rows - 1);
  const troubles = trouble === null ? [] : [trouble];
  if (progress === null) return fitted(troubles, columns).slice(0, room);
  const head = [
    titleLine(progress, now),
    barLine(picture, progress, columns),
    ...wrapped(countWords(progress), columns),
    ...troubles,
  ];
  if (head.length > room) {
    const [title = '', bar = '', ...others] = head;
    return fitted([bar, title, ...others].slice(0, room), columns);
  }
  // With one empty line between them.
  const latest = eventLines(events, columns, room - head.length - 1);
  return fitted(latest.length === 0 ? head : [...head, '', ...latest], columns);
}

function titleLine({ batchId, state, startedAt, pages }: BatchProgress, now: number): string {
  const handOver =
    pages.handedOver < pages.total ? [`${pages.handedOver} of ${pages.total} pages handed over`] : [];
  const elapsed = formatDuration(Math.max(0, now - Date.parse(startedAt)));
  return [`Batch ${batchId}`, STATE_WORDS[state], ...handOver, elapsed].join(SEPARATOR);
}

const STATE_WORDS: Readonly<Record<BatchProgress['state'], string>> = {
  running: 'running',
  paused: 'paused; "batch resume" goes on',
  ending: 'ending; no further item starts',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
};

function barLine(
  { perMinute }: Pick<BatchPicture, 'perMinute'>,
  { settled, items, state }: BatchProgress,
  columns: number,
): string {
  const share = items === 0 ? 1 : settled / items;
  const left = state === 'running' ? timeLeft(items - settled, perMinute) : null;
  // On a narrow screen the last words are left out.
  const [words = ''] = wrapped(
    [
      `${settled} of ${items}`,
      // Rounded down: 100 % is the end.
      `${Math.floor(share * 100)} %`,
      ...(perMinute === null ? [] : [rateText(perMinute)]),
      ...(left === null ? [] : [left]),
    ],
    columns,
  );
  const room = Math.min(MAX_BAR_COLUMNS, columns - words.length - 2);
  return room < MIN_BAR_COLUMNS ? words : `${bar(share, room)}  ${words}`;
}

function bar(share: number, columns: number): string {
  const done = Math.floor(share * columns);
  return '█'.repeat(done) + '░'.repeat(columns - done);
}

/** Words on as many lines as they need. */
function wrapped(words: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && widthOf(last + SEPARATOR + word) <= columns)
      lines[lines.length - 1] = last + SEPARATOR + word;
    else lines.push(word);
  }
  return lines;
}

/** The last ends that fit. */
function eventLines(events: readonly ItemEnd[], columns: number, room: number): string[] {
  const lines: string[] = [];
  for (const end of [...events].reverse()) {
    const event = eventText(end, columns);
    if (lines.length + event.length > room) break;
    lines.unshift(...event);
  }
  return lines;
}

/** A link that does not fit beside its job gets a line of its own: a cut link would not work. */
function eventText(end: ItemEnd, columns: number): string[] {
  const { settledAt, outcome, projectId, jobId, message } = end;
  const first = [
    settledAt.slice(11, 19),
    outcome.padEnd(OUTCOME_COLUMNS),
    printable(`${projectId}/${jobId}`),
  ].join('  ');
  const told = printable(outcomeText(end));
  if (told === '') return [first];
  const whole = `${first}  ${told}`;
  return message !== null || widthOf(whole) <= columns ? [whole] : [first, `  ${told}`];
}

function fitted(lines: readonly string[], columns: number): string[] {
  return lines.map((line) => fitColumns(printable(line), columns));
}

/** The window of the rate: long enough for turns of minutes, short enough to show a change. */
const WINDOW_MS = 3 * 60_000;

/** A rate over a shorter span means nothing. */
const MIN_SPAN_MS = 5_000;

/** How fast the items of a batch settle, over the last minutes. Times are milliseconds since the epoch. */
export class Rate {
  private readonly samples: { readonly at: number; readonly settled: number }[] = [];

  add(at: number, settled: number): void {
    this.samples.push({ at, settled });
    while ((this.samples[0]?.at ?? at) < at - WINDOW_MS) this.samples.shift();
  }

  /** Items a minute; null while it is not known. */
  perMinute(): number | null {
    const first = this.samples[0];
    const last = this.samples.at(-1);
    if (first === undefined || last === undefined || last.at - first.at < MIN_SPAN_MS) return null;
    return ((last.settled - first.settled) * 60_000) / (last.at - first.at);
  }
}

/** How long the remaining items take: `3m 20s left`; null if it is not known. */
export function timeLeft(items: number, perMinute: number | null): string | null {
  if (perMinute === null || perMinute === 0) return null;
  const seconds = Math.ceil((items / perMinute) * 60);
  return `${formatDuration(seconds * 1_000)} left`;
}

/** `0.4/min`, `42/min` */
export function rateText(perMinute: number): string {
  return `${perMinute < 10 ? perMinute.toFixed(1) : Math.round(perMinute)}/min`;
}
