import { setTimeout as sleep } from 'node:timers/promises';
import { type BatchHandle, type FollowUpHandle, hasCode } from '../entries/client';
import { isFailure } from '../contract/outcome';
import { truncate } from '../contract/text';
import { endOf, EXIT, printEnd } from './ends';
import { batchLine, itemLine, printBatchEnd } from './render/batch';
import { decideCommand, progressKey, progressText, serverText } from './render/follow-up';
import { printable } from './render/text';
import type { OutputStream, Session } from './session';

const REFRESH_MS = 1_000;

/** Shows the progress of a follow-up until it ends, and prints its end. */
export async function waitForEnd(session: Session, workflowId: string): Promise<void> {
  const followUp = (await session.connect()).getHandle(workflowId);
  const words = () => leftWords(session, workflowId);
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

export function leftWords(session: Session, id: string, ...group: string[]): string {
  const [watch, cancel] = ['watch', 'cancel'].map((verb) => session.command(...group, verb, id));
  const [what = 'follow-up'] = group;
  return `Stopped waiting; the ${what} continues.\n  watch it:   ${watch}\n  cancel it:  ${cancel}`;
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
      // The wait for the result reports final errors.
      const words = (error as Error).message.replace(/\.$/, '');
      const why = hasCode(error, 'UNREACHABLE', 'WAIT_TIMEOUT') ? 'Temporal does not answer' : words;
      if (!over.aborted && !hasCode(error, 'NOT_FOUND', 'INVALID_CONFIGURATION'))
        line.show(`${why}; the follow-up continues; still waiting`, 'unreachable');
    }
    await sleep(REFRESH_MS, undefined, { signal: over }).catch(() => undefined);
    if (over.aborted) return;
  }
}

/** Shows the progress of a batch until it ends, and prints its end; with `--json` each item too, as it settles. */
export async function waitForBatch(
  session: Session,
  batch: BatchHandle,
  left: AbortSignal,
  line: ProgressLine,
): Promise<void> {
  for await (const { view, ends } of withoutItems(session, batch.watch({ signal: left }))) {
    const shown = session.isJson ? ends : ends.filter(isFailure);
    if (shown.length > 0) line.clear();
    for (const end of shown) {
      if (session.isJson) session.print(end);
      else session.note(itemLine(end));
    }
    const isTrouble = view?.message !== view?.summary?.message;
    if (view?.summary && !isTrouble) {
      const { state, ended, items } = view.summary;
      // Where lines can't be rewritten, each hundredth gets a line.
      line.show(batchLine(view.summary), `${state} ${Math.floor((100 * ended) / items)}`);
    } else if (view?.state !== 'terminated')
      line.silence(
        view ? (view.message ?? 'not begun yet') : 'no answer; the batch continues; still waiting',
      );
  }
  line.clear();
  printBatchEnd(session, batch.batchId, await batch.result({ signal: left }));
}

/** Where the server has forgotten the items, the batch still has its end; `--json` promises each item. */
async function* withoutItems<T>(session: Session, looks: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* looks;
  } catch (error) {
    if (session.isJson || !hasCode(error, 'BATCH_ITEMS_UNAVAILABLE')) throw error;
    session.note(error.message);
  }
}

const EXIT_OF_SIGNAL: Readonly<Record<string, number>> = {
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
  SIGPIPE: EXIT.readerGone,
};

/**
 * Works until a signal, or the end of whoever reads the results, ends the waiting.
 *
 * @param words what to say then
 * @param work rejects when its signal is aborted
 */
export async function untilLeft(
  session: Session,
  words: () => string,
  work: (left: AbortSignal, line: ProgressLine) => Promise<void>,
): Promise<void> {
  const line = new ProgressLine(session.stderr, session.env);
  const left = new AbortController();
  const leave = (signal: NodeJS.Signals): void => {
    left.abort(new Error(signal));
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
    const { message } = left.signal.reason as Error;
    session.exitCode = EXIT_OF_SIGNAL[message] ?? EXIT.other;
  } finally {
    // A terminal sends Ctrl-C to every process of npm's, and some pass it on again: that must not cut off the last output.
    if (!left.signal.aborted) {
      process.off('SIGINT', leave);
      process.off('SIGTERM', leave);
    }
  }
}

/** The end comes within a second, unless a message under way is awaited first. */
const END_WITHIN_MS = 10_000;

/** Waits for a cancellation, and for the end. What was cancelled before is not an error. */
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

/** A worker that has just started, or replays a long history, needs time. */
const SILENCE_IS_SHOWN_MS = 4_000;

/** One line that is rewritten on a terminal, a line for each change elsewhere. */
export class ProgressLine {
  private readonly isLive: boolean;
  private shown = '';
  private answeredAt = performance.now();

  constructor(
    private readonly stream: OutputStream,
    env: Session['env'],
  ) {
    this.isLive = stream.isTTY === true && env.TERM !== 'dumb';
  }

  /** @param key what counts as a change where lines can't be rewritten */
  show(text: string, key: string): void {
    this.answeredAt = performance.now();
    this.write(text, key);
  }

  /** Why nobody answers, if that lasts. */
  silence(text: string): void {
    if (performance.now() - this.answeredAt > SILENCE_IS_SHOWN_MS) this.write(text, text);
  }

  /** So that other lines can be written. */
  clear(): void {
    if (!this.isLive || this.shown === '') return;
    this.stream.write(CLEAR_LINE);
    this.shown = '';
  }

  private write(text: string, key: string): void {
    const { isLive, stream } = this;
    // Some terminals wrap a line of their full width, which could not be cleared as one line.
    const line = truncate(printable(text), isLive ? Math.max(10, (stream.columns ?? 80) - 1) : Infinity);
    const shown = isLive ? line : key;
    if (this.shown === shown) return;
    this.shown = shown;
    stream.write(isLive ? CLEAR_LINE + line : `${new Date().toISOString().slice(11, 19)}Z ${line}\n`);
  }
}
