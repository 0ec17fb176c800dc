import { setTimeout as sleep } from 'node:timers/promises';
import { type BatchHandle, type FollowUpHandle, hasCode } from '../entries/client';
import { isFailure } from '../contract/outcome';
import { truncate } from '../contract/text';
import { awaitOutcome, EXIT_CODE, printOutcome } from './command-outcome';
import { batchLine, itemLine, printBatchOutcome } from './render/batch';
import { decideCommand, progressKey, progressText, serverText } from './render/follow-up';
import { printable } from './render/text';
import type { OutputStream, Session } from './session';

const REFRESH_MS = 1_000;

/** Shows the progress of a follow-up until it ends, and prints its outcome. */
export async function waitForFollowUp(session: Session, workflowId: string): Promise<void> {
  const followUp = (await session.connect()).getHandle(workflowId);
  const createMessage = () => detachMessage(session, workflowId);
  await runInterruptible(session, createMessage, async (signal, line) => {
    const ended = new AbortController();
    const shown = showProgress(session, followUp, line, AbortSignal.any([signal, ended.signal]));
    const outcome = await awaitOutcome(followUp, signal).finally(() => {
      ended.abort();
      return shown;
    });
    line.clear();
    printOutcome(session, outcome);
  });
}

export function detachMessage(session: Session, id: string, ...group: string[]): string {
  const [watch, cancel] = ['watch', 'cancel'].map((verb) => session.command(...group, verb, id));
  const [subject = 'follow-up'] = group;
  return `Stopped waiting. The ${subject} continues.\n  to watch:   ${watch}\n  to cancel:  ${cancel}`;
}

async function showProgress(
  session: Session,
  followUp: FollowUpHandle,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<void> {
  const decide = decideCommand(session, followUp.workflowId);
  for (;;) {
    try {
      const report = await followUp.progress({ signal });
      if (report.from === 'server') line.showIfStalled(serverText(report));
      // The progress of a follow-up that has just ended is not shown, because its outcome follows.
      else if (!['done', 'failed', 'cancelled'].includes(report.progress.phase))
        line.show(progressText(report.progress, Date.now(), decide), progressKey(report.progress));
    } catch (error) {
      // The wait for the result reports final errors.
      const errorText = (error as Error).message.replace(/\.$/, '');
      const reason = hasCode(error, 'UNREACHABLE', 'WAIT_TIMEOUT')
        ? 'the Temporal server does not respond'
        : errorText;
      if (!signal.aborted && !hasCode(error, 'NOT_FOUND', 'INVALID_CONFIGURATION'))
        line.show(`${reason}; the follow-up continues; still waiting`, 'unreachable');
    }
    await sleep(REFRESH_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
  }
}

/**
 * Shows the progress of a batch until it ends, and prints its result. The function prints each failed item when the item ends. With
 * `--json`, the function prints every item.
 */
export async function waitForBatch(
  session: Session,
  batch: BatchHandle,
  signal: AbortSignal,
  line: ProgressLine,
): Promise<void> {
  for await (const { view, results } of ignoreUnavailableItems(session, batch.watch({ signal }))) {
    const shown = session.isJson ? results : results.filter(isFailure);
    if (shown.length > 0) line.clear();
    for (const result of shown) {
      if (session.isJson) session.print(result);
      else session.printStatus(itemLine(result));
    }
    const hasProblem = view?.message !== view?.summary?.message;
    if (view?.summary && !hasProblem) {
      const { state, ended, items } = view.summary;
      // If lines can't be rewritten, every further percent is a new line.
      line.show(batchLine(view.summary), `${state} ${Math.floor((100 * ended) / items)}`);
    } else if (view?.state !== 'terminated')
      line.showIfStalled(
        view
          ? (view.message ?? 'not started yet')
          : 'the Temporal server does not respond; the batch continues; still waiting',
      );
  }
  line.clear();
  printBatchOutcome(session, batch.batchId, await batch.result({ signal }));
}

/**
 * Ignores that the items of a batch no longer exist, because the batch still has its result. With `--json`, throws the error, because
 * the output must have every item.
 */
async function* ignoreUnavailableItems<T>(
  session: Session,
  updates: AsyncIterable<T>,
): AsyncGenerator<T, void> {
  try {
    yield* updates;
  } catch (error) {
    if (session.isJson || !hasCode(error, 'BATCH_ITEMS_UNAVAILABLE')) throw error;
    session.printStatus(error.message);
  }
}

const EXIT_CODE_BY_SIGNAL: Readonly<Record<string, number>> = {
  SIGINT: EXIT_CODE.interrupted,
  SIGTERM: EXIT_CODE.terminated,
  SIGPIPE: EXIT_CODE.outputClosed,
};

/**
 * Runs `work` until it finishes, a signal arrives, or the reader of stdout exits.
 *
 * @param createMessage returns the text that is printed if the wait is interrupted
 * @param work rejects when its signal is aborted
 */
export async function runInterruptible(
  session: Session,
  createMessage: () => string,
  work: (signal: AbortSignal, line: ProgressLine) => Promise<void>,
): Promise<void> {
  const line = new ProgressLine(session.stderr, session.env);
  const controller = new AbortController();
  const abort = (signal: NodeJS.Signals): void => {
    controller.abort(new Error(signal));
  };
  process.on('SIGINT', abort);
  process.on('SIGTERM', abort);
  void session.stdoutClosed.then(abort);
  try {
    await work(controller.signal, line);
  } catch (error) {
    line.clear();
    if (!controller.signal.aborted) throw error;
    session.printStatus(createMessage());
    const { message } = controller.signal.reason as Error;
    session.exitCode = EXIT_CODE_BY_SIGNAL[message] ?? EXIT_CODE.other;
  } finally {
    // A Ctrl-C can arrive twice, because the terminal sends it to every process and npm forwards it. The listeners stay, because a
    // second signal must not cut off the last output.
    if (!controller.signal.aborted) {
      process.off('SIGINT', abort);
      process.off('SIGTERM', abort);
    }
  }
}

/** The longest wait for the outcome after a cancellation. The outcome comes within a second, or after a POST in progress has ended. */
const CANCEL_TIMEOUT_MS = 10_000;

/** Waits for a cancellation and for the outcome. A follow-up or batch that was cancelled before is not an error. */
export async function cancelAndWait<Cancelled, Ended>(
  session: Session,
  cancellation: Promise<Cancelled>,
  result: () => Promise<Ended>,
): Promise<{ readonly cancelResult: Cancelled | null; readonly end: Ended | null }> {
  const cancelResult = await cancellation.catch((error: unknown) => {
    if (!hasCode(error, 'ALREADY_ENDED') || error.state !== 'cancelled') throw error;
    session.printStatus('Nothing to do: already cancelled.');
    return null;
  });
  const end = await Promise.race([result(), sleep(CANCEL_TIMEOUT_MS, null, { ref: false })]);
  if (end === null)
    session.printStatus(
      'The cancellation was requested. It takes effect when POSTs in progress have ended and a worker polls the task queue.',
    );
  return { cancelResult, end };
}

const CLEAR_LINE = '\r\u001b[2K';

/** The time after which a missing response is shown. A worker that has just started, or that replays a long history, needs this time. */
const STALL_THRESHOLD_MS = 4_000;

/** Shows the progress in one line that is rewritten on a terminal. Elsewhere, every change is a new line. */
export class ProgressLine {
  private readonly isLive: boolean;
  private shownText = '';
  private lastResponseAtMs = performance.now();

  constructor(
    private readonly stream: OutputStream,
    env: Session['env'],
  ) {
    this.isLive = stream.isTTY === true && env.TERM !== 'dumb';
  }

  /** Shows the progress. @param key if lines can't be rewritten, a new line is written only if the key has changed */
  show(text: string, key: string): void {
    this.lastResponseAtMs = performance.now();
    this.write(text, key);
  }

  /** Shows the text if no progress was shown for {@link STALL_THRESHOLD_MS}. */
  showIfStalled(text: string): void {
    if (performance.now() - this.lastResponseAtMs > STALL_THRESHOLD_MS) this.write(text, text);
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
