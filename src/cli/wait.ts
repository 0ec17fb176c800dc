import { setTimeout as sleep } from 'node:timers/promises';
import { type BatchHandle, type BatchView, type FollowUpHandle, hasCode } from '../entries/client';
import type { NamedRun } from '../client/named-run';
import { isFailure } from '../contract/outcome';
import { awaitOutcome, printOutcome } from './command-outcome';
import { batchLine, itemLine, printBatchOutcome } from './render/batch';
import { decideCommand, progressKey, progressText, serverText } from './render/follow-up';
import type { ProgressLine } from './render/progress-line';
import type { Session } from './session';

const REFRESH_MS = 1_000;

/** Shows the progress of a follow-up until it ends, and prints its outcome. */
export async function waitForFollowUp(session: Session, followUp: FollowUpHandle): Promise<void> {
  const { signal } = session;
  session.continuation = followUpContinuation(session, followUp);
  const line = session.startLine();
  const ended = new AbortController();
  const shown = showProgress(session, followUp, line, AbortSignal.any([signal, ended.signal]));
  const outcome = await awaitOutcome(followUp, signal).finally(() => {
    ended.abort();
    return shown;
  });
  line.clear();
  printOutcome(session, outcome);
}

/** Returns the commands for a run of a follow-up that continues after the command has ended. */
export function followUpContinuation(session: Session, run: NamedRun): string {
  const [watch, cancel] = ['watch', 'cancel'].map((verb) => commandForRun(session, verb, run));
  return `The follow-up continues.\n  to watch:   ${watch}\n  to cancel:  ${cancel}`;
}

/** Returns a command for a run of a follow-up, or for the latest run if the run ID is undefined. */
export function commandForRun(session: Session, verb: string, { workflowId, runId }: NamedRun): string {
  return session.command(verb, workflowId, ...(runId === undefined ? [] : ['--run-id', runId]));
}

/** Returns the commands for a batch that continues after the command has ended. */
export function batchContinuation(session: Session, batchId: string): string {
  const [watch, cancel] = ['watch', 'cancel'].map((verb) => session.command('batch', verb, batchId));
  return `The batch continues.\n  to watch:   ${watch}\n  to cancel:  ${cancel}`;
}

async function showProgress(
  session: Session,
  followUp: FollowUpHandle,
  line: ProgressLine,
  signal: AbortSignal,
): Promise<void> {
  const decide = decideCommand(session, followUp);
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

/** The states of a batch that has not ended. */
const OPEN_STATES: readonly BatchView['state'][] = ['running', 'paused', 'ending'];

/**
 * Shows the progress of a batch until it ends, and prints its result. The function prints each failed item when the item ends. With
 * `--json`, the function prints every item.
 */
export async function waitForBatch(session: Session, batch: BatchHandle): Promise<void> {
  const { signal } = session;
  session.continuation = batchContinuation(session, batch.batchId);
  const line = session.startLine();
  let lastView: BatchView | null = null;
  for await (const { view, results } of ignoreUnavailableItems(session, batch.watch({ signal }))) {
    lastView = view;
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
  // The watch ends early if the items no longer exist. Otherwise, its last view is the result.
  const end = lastView && !OPEN_STATES.includes(lastView.state) ? lastView : await batch.result({ signal });
  printBatchOutcome(session, batch.batchId, end);
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

/** The text for a command that makes a change, if the command ends early. */
export const MAY_TAKE_EFFECT = 'The requested change may still take effect.';

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
