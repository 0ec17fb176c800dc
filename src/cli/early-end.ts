import { formatDuration } from '../contract/duration';
import { EXIT_CODE } from './command-outcome';
import type { Session } from './session';

/** The reason why a command ends before its work has ended. */
class EarlyEnd extends Error {
  /** @param type the type that `--json` prints; null if nothing is printed to stdout */
  constructor(
    message: string,
    readonly exitCode: number,
    readonly type: string | null = null,
  ) {
    super(message);
  }
}

const STOPPED = 'Stopped.';

const EXIT_CODE_BY_SIGNAL = { SIGINT: EXIT_CODE.receivedSigint, SIGTERM: EXIT_CODE.receivedSigterm } as const;

/**
 * Runs a command until it has ended, SIGINT or SIGTERM arrives, the reader of stdout exits, or the time of `--timeout` is over. To end
 * the command early, the function aborts the signal of the session. Every call of the command has this signal, so a single request
 * also ends early.
 *
 * @throws every error of the command, unless the command ended early
 */
export async function runUntilEarlyEnd(session: Session, work: () => Promise<unknown>): Promise<void> {
  const { signal } = session;
  const end = (name: keyof typeof EXIT_CODE_BY_SIGNAL): void => {
    session.abort(new EarlyEnd(STOPPED, EXIT_CODE_BY_SIGNAL[name]));
  };
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  void session.stdoutClosed.then(() => {
    // A command that has printed its last output ends normally.
    setImmediate(() => {
      session.abort(new EarlyEnd(STOPPED, EXIT_CODE.outputClosed));
    });
  });
  try {
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', reject);
    });
    await Promise.race([work(), aborted]);
  } catch (error) {
    session.clearLine();
    if (!(signal.reason instanceof EarlyEnd)) throw error;
    printEarlyEnd(session, signal.reason);
  } finally {
    // A Ctrl-C can arrive twice, because the terminal sends it to every process and npm forwards it. The listeners stay, because a
    // second signal must not cut off the last output.
    if (!signal.aborted) {
      process.off('SIGINT', end);
      process.off('SIGTERM', end);
    }
  }
}

/** Ends the command after this time. */
export function startTimeout(session: Session, timeoutMs: number): void {
  const message = `The timeout of ${formatDuration(timeoutMs)} has passed.`;
  setTimeout(() => {
    session.abort(new EarlyEnd(message, EXIT_CODE.timedOut, 'WaitTimeout'));
  }, timeoutMs).unref();
}

function printEarlyEnd(session: Session, { message, exitCode, type }: EarlyEnd): void {
  session.exitCode = exitCode;
  const text = [message, session.continuation].filter((part) => part !== '').join(' ');
  if (type !== null) session.print({ type, message: text, details: null });
  session.printStatus(text);
}
