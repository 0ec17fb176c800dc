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

/** Shows the progress of a follow-up until it ends, and prints its end. */
export async function waitForFollowUp(session: Session, workflowId: string): Promise<void> {
  const followUp = (await session.connect()).getHandle(workflowId);
  const createMessage = () => detachMessage(session, workflowId);
  await runInterruptible(session, createMessage, async (signal, line) => {
    const ended = new AbortController();
    const shown = showProgress(session, followUp, line, AbortSignal.any([signal, ended.signal]));
    const end = await awaitOutcome(followUp, signal).finally(() => {
      ended.abort();
      return shown;
    });
    line.clear();
    printOutcome(session, end);
  });
}

export function detachMessage(session: Session, id: string, ...group: string[]): string {
  const [watch, cancel] = ['watch', 'cancel'].map((verb) => session.command(...group, verb, id));
  const [what = 'follow-up'] = group;
  return `Stopped waiting; the ${what} continues.\n  watch it:   ${watch}\n  cancel it:  ${cancel}`;
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
      const report = await followUp.progress({ signal: signal });
      if (report.from === 'server') line.showIfStalled(serverText(report));
      // Of one that has just ended, the end itself says everything.
      else if (!['done', 'failed', 'cancelled'].includes(report.progress.phase))
        line.show(progressText(report.progress, Date.now(), decide), progressKey(report.progress));
    } catch (error) {
      // The wait for the result reports final errors.
      const errorText = (error as Error).message.replace(/\.$/, '');
      const reason = hasCode(error, 'UNREACHABLE', 'WAIT_TIMEOUT') ? 'Temporal does not answer' : errorText;
      if (!signal.aborted && !hasCode(error, 'NOT_FOUND', 'INVALID_CONFIGURATION'))
        line.show(`${reason}; the follow-up continues; still waiting`, 'unreachable');
    }
    await sleep(REFRESH_MS, undefined, { signal: signal }).catch(() => undefined);
    if (signal.aborted) return;
  }
}

/** Shows the progress of a batch until it ends, and prints its end; with `--json` each item too, as it settles. */
export async function waitForBatch(
  session: Session,
  batch: BatchHandle,
  signal: AbortSignal,
  line: ProgressLine,
): Promise<void> {
  for await (const { view, results } of ignoreUnavailableItems(session, batch.watch({ signal: signal }))) {
    const shown = session.isJson ? results : results.filter(isFailure);
    if (shown.length > 0) line.clear();
    for (const end of shown) {
      if (session.isJson) session.print(end);
      else session.printStatus(itemLine(end));
    }
    const hasProblem = view?.message !== view?.summary?.message;
    if (view?.summary && !hasProblem) {
      const { state, ended, items } = view.summary;
      // Where lines can't be rewritten, each hundredth gets a line.
      line.show(batchLine(view.summary), `${state} ${Math.floor((100 * ended) / items)}`);
    } else if (view?.state !== 'terminated')
      line.showIfStalled(
        view ? (view.message ?? 'not begun yet') : 'no answer; the batch continues; still waiting',
      );
  }
  line.clear();
  printBatchOutcome(session, batch.batchId, await batch.result({ signal: signal }));
}

/** Where the server has forgotten the items, the batch still has its end; `--json` promises each item. */
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
 * Works until a signal, or the end of whoever reads the results, ends the waiting.
 *
 * @param createMessage what to say then
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
    // A terminal sends Ctrl-C to every process of npm's, and some pass it on again: that must not cut off the last output.
    if (!controller.signal.aborted) {
      process.off('SIGINT', abort);
      process.off('SIGTERM', abort);
    }
  }
}

/** The end comes within a second, unless a message under way is awaited first. */
const CANCEL_TIMEOUT_MS = 10_000;

/** Waits for a cancellation, and for the end. What was cancelled before is not an error. */
export async function cancelAndWait<Answer, Ended>(
  session: Session,
  cancellation: Promise<Answer>,
  result: () => Promise<Ended>,
): Promise<{ readonly cancelResult: Answer | null; readonly end: Ended | null }> {
  const cancelResult = await cancellation.catch((error: unknown) => {
    if (!hasCode(error, 'ALREADY_ENDED') || error.state !== 'cancelled') throw error;
    session.printStatus('It was already cancelled.');
    return null;
  });
  const end = await Promise.race([result(), sleep(CANCEL_TIMEOUT_MS, null, { ref: false })]);
  if (end === null)
    session.printStatus(
      'Cancellation was requested. The end comes when messages under way are answered and a worker polls the task queue.',
    );
  return { cancelResult: cancelResult, end };
}

const CLEAR_LINE = '\r\u001b[2K';

/** A worker that has just started, or replays a long history, needs time. */
const STALL_THRESHOLD_MS = 4_000;

/** One line that is rewritten on a terminal, a line for each change elsewhere. */
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

  /** @param key what counts as a change where lines can't be rewritten */
  show(text: string, key: string): void {
    this.lastResponseAtMs = performance.now();
    this.write(text, key);
  }

  /** Why nobody answers, if that lasts. */
  showIfStalled(text: string): void {
    if (performance.now() - this.lastResponseAtMs > STALL_THRESHOLD_MS) this.write(text, text);
  }

  /** So that other lines can be written. */
  clear(): void {
    if (!this.isLive || this.shownText === '') return;
    this.stream.write(CLEAR_LINE);
    this.shownText = '';
  }

  private write(text: string, key: string): void {
    const { isLive, stream } = this;
    // Some terminals wrap a line of their full width, which could not be cleared as one line.
    const line = truncate(printable(text), isLive ? Math.max(10, (stream.columns ?? 80) - 1) : Infinity);
    const shown = isLive ? line : key;
    if (this.shownText === shown) return;
    this.shownText = shown;
    stream.write(isLive ? CLEAR_LINE + line : `${new Date().toISOString().slice(11, 19)}Z ${line}\n`);
  }
}
