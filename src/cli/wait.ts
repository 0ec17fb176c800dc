import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT } from './exit-codes';
import { type Outcome, outcomeOfEnd, outcomeOfResult } from './render/outcome';
import { progressKey, progressText, serverText } from './render/progress';
import { type ProgressLine, progressLine } from './render/progress-line';
import type { Session } from './session';
import {
  FollowUpEndError,
  type FollowUpHandle,
  type FollowUpProgress,
  NotFoundError,
  type ProgressReport,
} from '../client';

/** Often enough for a person; a query costs the server and the worker some milliseconds. */
const REFRESH_MS = 1_000;

/** How long one look at the progress waits for a worker. */
const LOOK_MS = 2_500;

/** How long no worker may answer before that is shown: one that has just started, or replays a long history, needs time. */
const SILENCE_IS_NEWS_MS = 4_000;

/** How a wait ended: with the end of the follow-up, or with a signal that ended only the waiting. */
type Waited = { readonly ended: Outcome } | { readonly leftBy: NodeJS.Signals };

/**
 * Waits for the end of a follow-up and shows its progress on stderr. Ctrl-C ends the waiting, not the follow-up.
 */
export async function waitForEnd(session: Session, workflowId: string): Promise<Waited> {
  const followUp = (await session.connect()).getHandle(workflowId);
  const line = progressLine(session.output.stderr, session.env);
  const over = new AbortController();
  const left = untilSignal(over.signal);
  const shown = showProgress(session, followUp, line, over.signal);
  try {
    return await Promise.race([endOf(followUp, over.signal).then((ended) => ({ ended })), left]);
  } finally {
    over.abort();
    await shown;
    line.clear();
  }
}

/** The end of a follow-up as an outcome. @throws any other error */
export async function endOf(followUp: FollowUpHandle, signal?: AbortSignal): Promise<Outcome> {
  try {
    const result = await followUp.result(signal === undefined ? {} : { signal });
    return outcomeOfResult(followUp.workflowId, result);
  } catch (error) {
    if (error instanceof FollowUpEndError) return outcomeOfEnd(error);
    throw error;
  }
}

/** Says that the follow-up continues, and how to return to it. @returns the exit code */
export function printLeft(session: Session, workflowId: string, signal: NodeJS.Signals): number {
  session.output.note(
    [
      'Stopped waiting; the follow-up continues.',
      `  watch it:   ${session.command('watch', workflowId)}`,
      `  cancel it:  ${session.command('cancel', workflowId)}`,
    ].join('\n'),
  );
  return signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
}

async function showProgress(
  session: Session,
  followUp: FollowUpHandle,
  line: ProgressLine,
  over: AbortSignal,
): Promise<void> {
  let answeredAt = Date.now();
  const aborted = new Promise<'aborted'>((resolve) => {
    over.addEventListener('abort', () => {
      resolve('aborted');
    });
  });
  while (!over.aborted) {
    try {
      const report = await Promise.race([followUp.progress({ timeoutMs: LOOK_MS }), aborted]);
      if (report === 'aborted') return;
      if (report.from === 'worker') answeredAt = Date.now();
      const silent = Date.now() - answeredAt > SILENCE_IS_NEWS_MS;
      if (report.from === 'worker' ? !isOver(report.progress) : silent)
        showReport(session, followUp.workflowId, line, report);
    } catch (error) {
      // The wait for the result reports final errors; this is only the progress.
      if (!(error instanceof NotFoundError)) {
        line.show('Temporal does not answer; the follow-up continues; still waiting', 'unreachable');
      }
    }
    await sleep(REFRESH_MS, undefined, { signal: over }).catch(() => undefined);
  }
}

/** In these phases the end itself says everything. */
function isOver({ phase }: FollowUpProgress): boolean {
  return phase === 'done' || phase === 'failed' || phase === 'cancelled';
}

function showReport(session: Session, workflowId: string, line: ProgressLine, report: ProgressReport): void {
  if (report.from === 'server') {
    const text = serverText(report);
    line.show(text, text);
    return;
  }
  const text = progressText(report.progress, Date.now());
  const decision =
    report.progress.phase === 'needs-decision'
      ? `did the message arrive? ${session.command('resolve', workflowId, 'delivered')} (or not-delivered) · `
      : '';
  line.show(decision + text, progressKey(report.progress));
}

/**
 * The first signal that asks this process to stop. It keeps listening until the process ends: a terminal sends Ctrl-C to
 * every process of npm's, and some pass it on again, which must not cut off the last output.
 */
export function untilSignal(over: AbortSignal): Promise<{ leftBy: NodeJS.Signals }> {
  return new Promise((resolve) => {
    let left = false;
    const leave = (leftBy: NodeJS.Signals): void => {
      left = true;
      resolve({ leftBy });
    };
    process.on('SIGINT', leave);
    process.on('SIGTERM', leave);
    over.addEventListener('abort', () => {
      if (left) return;
      process.off('SIGINT', leave);
      process.off('SIGTERM', leave);
    });
  });
}
