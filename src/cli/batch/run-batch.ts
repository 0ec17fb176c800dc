import type { BatchClient, BatchOptions, StartedBatch } from '../../client';
import { EXIT } from '../exit-codes';
import { progressLine } from '../progress-line';
import type { Session } from '../session';
import { untilSignal } from '../wait';
import { batchOptionsOf, type StartFlags } from './flags';
import { followBatch } from './follow';
import { tellBatchOutcome } from './outcome';

/** What starts a batch; null when there is nothing to start. */
export type Start = (batches: BatchClient, options: BatchOptions) => Promise<StartedBatch | null>;

/**
 * Starts a batch, or goes on with the one of its id, and waits for its end. Ctrl-C ends the waiting, not the batch.
 *
 * @param nothingToDo what to say when the batch stays as it is
 */
export async function runBatch(
  session: Session,
  batchId: string,
  start: Start,
  flags: StartFlags,
  nothingToDo: string,
): Promise<void> {
  const { output } = session;
  const json = flags.json === true;
  const options = batchOptionsOf(flags);
  await session.connect();
  if (flags.wait) output.jsonLines = json;
  const over = new AbortController();
  const left = untilSignal(over.signal);
  try {
    const handedOver = await handOver(session, start, options, left);
    if ('leftBy' in handedOver) {
      output.note(
        [
          `Left while it was handed over: ${handedOver.pages}. What is handed over is sent.`,
          '  hand over the rest:  the same command again, within an hour',
          `  or cancel it:        ${session.command('batch', 'cancel', batchId)}`,
        ].join('\n'),
      );
      session.exitCode = exitCodeOfSignal(handedOver.leftBy);
      return;
    }
    const { started } = handedOver;
    if (started === null) output.note(nothingToDo);
    else await tellStarted(session, started, flags, nothingToDo);
    if (!flags.wait) {
      if (json) output.json(started ?? { batchId, attached: 'ended' });
      else output.result(batchId);
      output.note(`watch it    ${session.command('batch', 'watch', batchId)}`);
      return;
    }
    await waitForBatch(session, batchId, json, left);
  } finally {
    over.abort();
  }
}

/** Waits for the end of a batch, tells it, and takes its exit code; or tells how to come back. */
export async function waitForBatch(
  session: Session,
  batchId: string,
  json: boolean,
  left: Promise<{ readonly leftBy: NodeJS.Signals }>,
): Promise<void> {
  const { output } = session;
  const waited = await followBatch(session, batchId, json, left);
  if ('ended' in waited) {
    tellBatchOutcome(session, batchId, waited.ended, json);
    return;
  }
  output.note(
    [
      'The batch goes on without us.',
      `  come back:    ${session.command('batch', 'watch', batchId)}`,
      `  look at it:   ${session.command('batch', 'status', batchId)}`,
      `  cancel it:    ${session.command('batch', 'cancel', batchId)}`,
    ].join('\n'),
  );
  session.exitCode = exitCodeOfSignal(waited.leftBy);
}

type Left = Promise<{ readonly leftBy: NodeJS.Signals }>;

async function handOver(
  session: Session,
  start: Start,
  options: BatchOptions,
  left: Left,
): Promise<
  { readonly started: StartedBatch | null } | { readonly leftBy: NodeJS.Signals; readonly pages: string }
> {
  const { batches } = await session.connect();
  const line = progressLine(session.output.stderr, session.env);
  let pages = 'no page yet';
  const onPage = (handedOver: number, total: number): void => {
    pages = `${handedOver} of ${total} pages`;
    // A tenth of all is news.
    if (total > 1) line.show(`handed over ${pages}`, String(Math.floor((10 * handedOver) / total)));
  };
  try {
    const starting = start(batches, { ...options, onPage }).then((started) => ({ started }));
    const first = await Promise.race([starting, left]);
    return 'started' in first ? first : { ...first, pages };
  } finally {
    line.clear();
  }
}

async function tellStarted(
  session: Session,
  started: StartedBatch,
  flags: StartFlags,
  nothingToDo: string,
): Promise<void> {
  const { output } = session;
  const { batchId, workflowId, attached, resumedAfter } = started;
  const page = await session.webUiPage(workflowId);
  if (page !== undefined) output.note(`web ui      ${page}`);
  if (attached === 'ended') output.note(nothingToDo);
  if (resumedAfter !== null) {
    output.note(`resumed     it was ${resumedAfter}; what has been sent is not sent again`);
  }
  if (attached !== 'running') return;
  output.note('attached    this batch is running; nothing is sent again');
  if (flags.concurrency !== undefined || flags.tolerate !== undefined) {
    const change = session.command('batch', 'concurrency', batchId, flags.concurrency ?? 'N');
    output.note(`note        it keeps its own concurrency and tolerance; ${change} changes the first`);
  }
}

function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
}
