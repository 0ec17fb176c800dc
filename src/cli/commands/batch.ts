import { Command } from 'commander';
import {
  type BatchHandle,
  type CallOptions,
  checkBatch,
  type RunOptions,
  type StartedBatch,
} from '../../entries/client';
import { CONCURRENCY } from '../../batch/items';
import { pluralize } from '../../contract/text';
import { addRunFlags, COLUMNS, readBatchFile } from '../flags/batch-input';
import { addLineFlags, type RequestFlags, wholeNumberParser } from '../flags/request-flags';
import { itemLine, printBatch, printBatchOutcome } from '../render/batch';
import type { Session } from '../session';
import { cancelAndWait, detachMessage, runInterruptible, waitForBatch } from '../wait';
import { NO_WAIT, type WaitFlags } from './send';

const JSON_HELP = 'print JSON: { batchId, state, message, summary }, after a line for each item that is told';

export function batchCommand(session: Session): Command {
  const batches = new Command('batch').description(
    'Sends many follow-ups, from a file, with limited concurrency. Workers do the work: a batch continues when this ' +
      'program ends.',
  );
  const addSubcommand = (
    name: string,
    description: string,
    act: (batch: BatchHandle, value: never) => Promise<void>,
  ): Command =>
    batches
      .command(name)
      .argument('<batch>', 'batch id, or workflow id')
      .option('--json', JSON_HELP)
      .description(description)
      .action(async (batchId: string, value: unknown) =>
        act((await session.connect()).batches.getHandle(batchId), value as never),
      );
  // The answer of an update is older than the latest look of the batch's activity.
  const printAfterUpdate = async (batch: BatchHandle, change: Promise<unknown>): Promise<void> => {
    await change;
    printBatch(session, batch.batchId, await batch.progress());
  };
  addRunCommand(batches, session);
  addSubcommand(
    'status',
    'Prints where a batch stands, or how it ended. The exit code is 0 while it runs, and that of run after its end.',
    async (batch) => {
      printBatchOutcome(session, batch.batchId, await batch.progress());
    },
  );
  addSubcommand('watch', 'Waits for a batch, and prints its end, as run does.', (batch) => {
    session.isJsonLines = true;
    const words = () => detachMessage(session, batch.batchId, 'batch');
    return runInterruptible(session, words, (signal, line) => waitForBatch(session, batch, signal, line));
  });
  addSubcommand(
    'results',
    'Prints how each item of a batch has ended so far, in the order of settling. It needs no worker.',
    (batch) => printResults(session, batch),
  );
  addSubcommand(
    'pause',
    'Starts no further item of a batch until it is resumed; open ones continue.',
    (batch) => printAfterUpdate(batch, batch.pause()),
  );
  addSubcommand('resume', 'Continues a paused batch. One that has ended continues by "batch run".', (batch) =>
    printAfterUpdate(batch, batch.resume()),
  );
  const { minimum, maximum } = CONCURRENCY;
  addSubcommand(
    'concurrency',
    'Changes how many follow-ups of a running batch are open at a time. A lower number ends none of them.',
    (batch, concurrency: number) => printAfterUpdate(batch, batch.setConcurrency(concurrency)),
  ).argument('<concurrency>', `${minimum} to ${maximum}`, wholeNumberParser(minimum, maximum));
  addSubcommand(
    'cancel',
    'Ends a batch: nothing further is started, and open follow-ups continue.',
    (batch, { cancelRunning = false }: { readonly cancelRunning?: boolean }) =>
      cancelBatch(session, batch, cancelRunning),
  ).option(
    '--cancel-running',
    'cancel every open follow-up that the batch has started too, also if it has ended; the agents themselves continue',
  );
  const retry = addSubcommand(
    'retry',
    'Sends the items of an ended batch whose message was not sent or was rejected, and waits as run does. Every other ' +
      'item keeps its end.',
    (batch, { includeUnknown, ...flags }: StartFlags & { readonly includeUnknown?: boolean }) => {
      const unknown = includeUnknown ? '' : ' --include-unknown also sends items whose delivery is unknown.';
      const nothingToDo = `Nothing to retry: no message of ${batch.batchId} was left unsent or rejected.${unknown} This is its end`;
      return startAndWait(session, batch, flags, nothingToDo, (settings) =>
        batch.retry({ includeUnknown, ...settings }),
      );
    },
  );
  addRunFlags(retry.option(...NO_WAIT)).option(
    '--include-unknown',
    'also send items whose delivery is unknown; messages that did arrive are then sent twice',
  );
  return batches;
}

async function printResults(session: Session, batch: BatchHandle): Promise<void> {
  session.isJsonLines = true;
  const ends = await batch.listResults();
  for (const end of ends) session.print(end, itemLine(end));
  const view = await batch.progress();
  const { state, message, summary } = view;
  const ended = `${ends.length}${summary === null ? '' : ` of ${summary.items}`} ended`;
  if (session.isJson) session.print({ batchId: batch.batchId, ...view });
  else session.printStatus(`${ended}; the batch is ${state}${message === null ? '' : `: ${message}`}`);
}

async function cancelBatch(session: Session, batch: BatchHandle, cancelRunning: boolean): Promise<void> {
  const { batchId } = batch;
  const { cancelResult, end } = await cancelAndWait(session, batch.cancel({ cancelRunning }), () =>
    batch.result(),
  );
  const cancelled = cancelResult ?? 0;
  const document = { batchId, ended: end !== null, cancelled, end: end && { batchId, ...end } };
  if (session.isJson) session.print(document);
  else if (end !== null) printBatch(session, batchId, end);
  session.printStatus(
    cancelRunning
      ? `Cancelled ${pluralize(cancelled, 'open follow-up')} that the batch had started.`
      : `Follow-ups that were open continue; see them with ${session.command('list', '--batch', batchId)}`,
  );
}

type StartFlags = RunOptions & WaitFlags;

function addRunCommand(batches: Command, session: Session): void {
  const run = batches
    .command('run')
    .description(
      'Sends the follow-ups of a file, and waits for their jobs. If any line is wrong, nothing is sent. The same file ' +
        'again is the same batch: what was sent is not sent again.',
    )
    .argument('<file>', 'JSON Lines or CSV; - for stdin')
    .option(
      '--batch-id <id>',
      'your name for the batch (default: a hash of its projects, jobs, prompts and request ids)',
    )
    .option('--json', JSON_HELP);
  addLineFlags(addRunFlags(run.option(...NO_WAIT)))
    .addHelpText(
      'after',
      `
A line of JSON Lines is one object, with the fields of a request: {"project": "docs", "job": "job-1", "prompt": "…"}.
The first line of CSV names its columns. Both know: ${COLUMNS.join(', ')}.

Example:
  $ ${session.command('batch', 'run', '-', '--prompt', 'Rebase on main.', '--max-failures', '5%', '--json')} < jobs.csv`,
    )
    .action(async (file: string, flags: StartFlags & RequestFlags & { readonly batchId?: string }) => {
      const { batchId: name, concurrency, maxFailures } = flags;
      const batch = await readBatchFile(session.stdin, file, flags, (requests) =>
        checkBatch(requests, { batchId: name, concurrency, maxFailures }),
      );
      const { batchId, items } = batch;
      // Printed before anything is started, so that an interrupted caller can come back by it.
      session.printStatus(`batch       ${batchId} (${pluralize(items.length, 'item')})`);
      const nothingToDo = `already run as ${batchId}; give --batch-id to send it once more. This is its end`;
      const { batches: client } = await session.connect();
      await startAndWait(session, client.getHandle(batchId), flags, nothingToDo, (settings) =>
        client.start(batch, settings),
      );
    });
}

/** @param nothingToDo what to say when the batch stays as it is @param start gives null when there is nothing to start */
async function startAndWait(
  session: Session,
  batch: BatchHandle,
  { wait, concurrency, maxFailures }: StartFlags,
  nothingToDo: string,
  start: (options: RunOptions & CallOptions) => Promise<StartedBatch | null>,
): Promise<void> {
  const { batchId } = batch;
  session.isJsonLines = wait;
  let detachText =
    'Stopped during the hand-over. The same command again starts the batch, or attaches to it where it has started.';
  await runInterruptible(
    session,
    () => detachText,
    async (signal, line) => {
      const started = await start({ concurrency, maxFailures, signal });
      detachText = detachMessage(session, batchId, 'batch');
      const { workflowId, attached = 'ended', resumedAfter = null } = started ?? {};
      if (workflowId !== undefined) await session.printWebUiLink(workflowId);
      if (resumedAfter !== null)
        session.printStatus(
          `resumed     it had ended: ${resumedAfter}; what may have arrived is not sent again`,
        );
      if (attached === 'running')
        session.printStatus(
          'attached    this batch is running, with its own settings; nothing is sent again',
        );
      if (attached === 'ended') session.printStatus(nothingToDo);
      if (wait) return waitForBatch(session, batch, signal, line);
      session.print(started ?? { batchId, attached }, batchId);
      session.printStatus(`watch it    ${session.command('batch', 'watch', batchId)}`);
    },
  );
}
