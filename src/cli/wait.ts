import { setTimeout as sleep } from 'node:timers/promises';
import { type BatchHandle, type FollowUpHandle, hasCode, NotFoundError } from '../client';
import { isFailure } from '../core/end';
import { formatDuration } from '../core/units';
import { endOf, EXIT, printEnd } from './ends';
import { batchLine, itemLine, printBatchEnd } from './render/batch';
import { decideCommand, progressKey, progressText, serverText } from './render/follow-up';
import { fitColumns, printable } from './render/text';
import type { OutputStream, Session } from './session';

/** Often enough for a person; a query costs the server and the worker some milliseconds. */
const REFRESH_MS = 1_000;

/** Waits for the end of a follow-up and prints it. Its progress goes to stderr. */
export async function waitForEnd(session: Session, workflowId: string): Promise<void> {
  const followUp = (await session.connect()).getHandle(workflowId);
  const words = (): string =>
    [
      'Stopped waiting; the follow-up continues.',
      `  watch it:   ${session.command('watch', workflowId)}`,
      `  cancel it:  ${session.command('cancel', workflowId)}`,
    ].join('\n');
  await untilLeft(session, words, async (left, line) => {
    const ended = new AbortController();
    const shown = showProgress(session, followUp, line, AbortSignal.any([left, ended.signal]));
    const end = await endOf(followUp, left).finally(() => {
      ended.abort();
      return shown;
    });
    line.clear();
    printEnd(session, end);
  });
}

async function showProgress(
  session: Session,
  followUp: FollowUpHandle,
  line: ProgressLine,
  over: AbortSignal,
): Promise<void> {
  const decide = decideCommand(session, followUp.workflowId);
  for (;;) {
    try {
      const report = await followUp.progress({ signal: over });
      if (report.from === 'server') line.silence(serverText(report));
      // Of one that has just ended, the end itself says everything.
      else if (!['done', 'failed', 'cancelled'].includes(report.progress.phase))
        line.show(progressText(report.progress, Date.now(), decide), progressKey(report.progress));
    } catch (error) {
      // The wait for the result reports final errors; this is only the progress.
      if (!over.aborted && !(error instanceof NotFoundError))
        line.show('Temporal does not answer; the follow-up continues; still waiting', 'unreachable');
    }
    await sleep(REFRESH_MS, undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) return;
  }
}

/** Where lines can't be rewritten: how often one with nothing but new numbers is printed at most. */
const LINE_EVERY_MS = 10_000;

/**
 * Shows the progress of a batch until it ends, and prints its end; with `--json` each item too, as it settles.
 *
 * @throws the reason of `left`, which ends the waiting
 */
export async function waitForBatch(
  session: Session,
  batch: BatchHandle,
  left: AbortSignal,
  line: ProgressLine,
): Promise<void> {
  const meter = new Meter();
  let counted = { words: '', at: -Infinity };
  for await (const { report, ends } of batch.watch({ signal: left })) {
    const shown = session.isJson ? ends : ends.filter(isFailure);
    if (shown.length > 0) line.clear();
    for (const end of shown) {
      if (session.isJson) session.print(end);
      else session.note(itemLine(end));
    }
    if (report?.progress && report.trouble === null) {
      const now = Date.now();
      const { state, settled, items, open } = report.progress;
      const words = `${settled} ${open}`;
      if (words !== counted.words && now - counted.at >= LINE_EVERY_MS) counted = { words, at: now };
      line.show(batchLine(report.progress, meter.show(settled, items, now)), `${state} ${counted.words}`);
    } else if (report?.state !== 'running' && report !== null) break;
    else line.silence(report?.trouble ?? 'no answer; the batch continues; still waiting');
  }
  line.clear();
  printBatchEnd(session, batch.batchId, await batch.result({ signal: left }));
}

const EXIT_OF_SIGNAL: Readonly<Record<string, number>> = {
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
  SIGPIPE: EXIT.readerGone,
};

/**
 * Works until a signal, or the end of whoever reads the results, ends the waiting. What is waited for continues.
 *
 * @param words what to say then
 * @param work clears the line when it is done; rejects when its signal is aborted
 */
export async function untilLeft(
  session: Session,
  words: () => string,
  work: (left: AbortSignal, line: ProgressLine) => Promise<void>,
): Promise<void> {
  const line = new ProgressLine(session.stderr, session.env);
  const left = new AbortController();
  let leftBy = '';
  const leave = (signal: string): void => {
    leftBy ||= signal;
    left.abort();
  };
  process.on('SIGINT', leave);
  process.on('SIGTERM', leave);
  void session.readerGone.then(leave);
  try {
    await work(left.signal, line);
  } catch (error) {
    line.clear();
    if (!left.signal.aborted) throw error;
    session.note(words());
    session.exitCode = EXIT_OF_SIGNAL[leftBy] ?? EXIT.other;
  } finally {
    // A terminal sends Ctrl-C to every process of npm's, and some pass it on again: that must not cut off the last output.
    if (leftBy === '') {
      process.off('SIGINT', leave);
      process.off('SIGTERM', leave);
    }
  }
}

/** How long `cancel` waits for the end. It comes within a second, unless a message under way is awaited first. */
const END_WITHIN_MS = 10_000;

/** Waits for a cancellation, and for the end. What was cancelled before is not an error; what ended otherwise is. */
export async function cancelAndWait<Answer, Ended>(
  session: Session,
  cancellation: Promise<Answer>,
  result: () => Promise<Ended>,
): Promise<{ readonly answer: Answer | null; readonly end: Ended | null }> {
  const answer = await cancellation.catch((error: unknown) => {
    if (!hasCode(error, 'ALREADY_ENDED') || error.state !== 'cancelled') throw error;
    session.note('It was already cancelled.');
    return null;
  });
  const end = await Promise.race([result(), sleep(END_WITHIN_MS, null, { ref: false })]);
  if (end === null)
    session.note(
      'Cancellation was requested. The end comes when messages under way are answered and a worker polls the task queue.',
    );
  return { answer, end };
}

const CLEAR_LINE = '\r\u001b[2K';

/** How long no worker may answer before that is shown: one that has just started, or replays a long history, needs time. */
const SILENCE_IS_SHOWN_MS = 4_000;

/** Where progress is shown: one line that is rewritten on a terminal, a line for each change elsewhere. */
export class ProgressLine {
  private readonly isLive: boolean;
  private shown = '';
  private answeredAt = Date.now();

  constructor(
    private readonly stream: OutputStream,
    env: Session['env'],
  ) {
    this.isLive = stream.isTTY === true && env.TERM !== 'dumb';
  }

  /** @param key what counts as a change where lines can't be rewritten */
  show(text: string, key: string): void {
    this.answeredAt = Date.now();
    this.write(text, key);
  }

  /** Shows why nobody answers, if that lasts. */
  silence(text: string): void {
    if (Date.now() - this.answeredAt > SILENCE_IS_SHOWN_MS) this.write(text, text);
  }

  /** Removes the live line, so that other lines can be written. */
  clear(): void {
    if (!this.isLive || this.shown === '') return;
    this.stream.write(CLEAR_LINE);
    this.shown = '';
  }

  private write(text: string, key: string): void {
    const { isLive, stream } = this;
    // Some terminals wrap a line of their full width, which could not be cleared as one line.
    const line = fitColumns(printable(text), isLive ? Math.max(10, (stream.columns ?? 80) - 1) : Infinity);
    if (this.shown === (isLive ? line : key)) return;
    this.shown = isLive ? line : key;
    stream.write(isLive ? CLEAR_LINE + line : `${new Date().toISOString().slice(11, 19)}Z ${line}\n`);
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
    const bar = '█'.repeat(Math.floor(share * BAR_COLUMNS)).padEnd(BAR_COLUMNS, '░');
    // Rounded down: 100 % is the end.
    const parts = [`${bar} ${settled} of ${items}`, `${Math.floor(share * 100)} %`];
    const first = this.samples[0] ?? { at: now, settled };
    if (now - first.at < MIN_SPAN_MS) return parts.join(' · ');
    const perMinute = ((settled - first.settled) * 60_000) / (now - first.at);
    parts.push(`${perMinute < 10 ? perMinute.toFixed(1) : Math.round(perMinute)}/min`);
    const seconds = Math.ceil(((items - settled) * 60) / perMinute);
    if (perMinute > 0 && settled < items) parts.push(`${formatDuration(seconds * 1_000)} left`);
    return parts.join(' · ');
  }
}
