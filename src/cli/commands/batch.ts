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
import { addFileFlags, addRunFlags, COLUMNS, type FileFlags, readBatchFile } from '../flags/batch-input';
import { wholeNumberParser } from '../flags/request-flags';
import { itemLine, printBatch, printBatchOutcome } from '../render/batch';
import type { Session } from '../session';
import { batchContinuation, cancelAndWait, MAY_TAKE_EFFECT, waitForBatch } from '../wait';
import { NO_WAIT, type WaitFlags } from './send';

const JSON_HELP =
  'print JSON: { batchId, state, message, summary }; run, watch, retry and results first print one line per item; ' +
  'with --no-wait, run and retry print only { batchId, attached, … }';

export function batchCommand(session: Session): Command {
  const { signal } = session;
  const batches = new Command('batch').description(
    'Sends many follow-ups from a file, with limited concurrency. Workers do the work, so a batch continues when this ' +
      'program exits.',
  );
  const addSubcommand = (
    name: string,
    description: string,
    act: (batch: BatchHandle, value: never) => Promise<void>,
    jsonHelp = JSON_HELP,
  ): Command =>
    batches
      .command(name)
      .argument('<batch>', 'batch ID or workflow ID')
      .option('--json', jsonHelp)
      .description(description)
      .action(async (batchId: string, value: unknown) =>
        act((await session.connect()).batches.getHandle(batchId), value as never),
      );
  // The progress is read after the update, because the update may return the progress from before the latest round of the batch.
  const printAfterUpdate = async (batch: BatchHandle, change: Promise<unknown>): Promise<void> => {
    session.continuation = MAY_TAKE_EFFECT;
    await change;
    printBatch(session, batch.batchId, await batch.progress({ signal }));
  };
  addRunCommand(batches, session);
  addSubcommand(
    'status',
    'Prints the status of a batch. The exit code is 0 while the batch is running, and afterwards the exit code of "batch run".',
    async (batch) => {
      printBatchOutcome(session, batch.batchId, await batch.progress({ signal }));
    },
  );
  addSubcommand('watch', 'Waits for a batch, and prints its result as "batch run" does.', (batch) => {
    session.isJsonLines = true;
    return waitForBatch(session, batch);
  });
  addSubcommand(
    'results',
    'Prints the outcome of each item that has ended so far, ordered by end time. The command needs no worker.',
    (batch) => printResults(session, batch),
  );
  addSubcommand(
    'pause',
    'Pauses a batch: no further item starts until it is resumed, and running items continue.',
    (batch) => printAfterUpdate(batch, batch.pause({ signal })),
  );
  addSubcommand(
    'resume',
    'Resumes a paused batch. To continue a batch that has ended, use "batch run".',
    (batch) => printAfterUpdate(batch, batch.resume({ signal })),
  );
  const { minimum, maximum } = CONCURRENCY;
  addSubcommand(
    'concurrency',
    'Changes the maximum number of follow-ups of a batch that run at the same time. A lower number ends no running follow-up.',
    (batch, concurrency: number) => printAfterUpdate(batch, batch.setConcurrency(concurrency, { signal })),
  ).argument('<concurrency>', `${minimum} to ${maximum}`, wholeNumberParser(minimum, maximum));
  addSubcommand(
    'cancel',
    'Cancels a batch: no further item starts, and running follow-ups continue.',
    (batch, { cancelRunning = false }: { readonly cancelRunning?: boolean }) =>
      cancelBatch(session, batch, cancelRunning),
    'print one JSON document: { batchId, ended, cancelled, end }',
  ).option(
    '--cancel-running',
    'also cancel every running follow-up that the batch has started, even if the batch has ended; the agents continue',
  );
  const retry = addSubcommand(
    'retry',
    'Sends the items of an ended batch whose message was not sent or was rejected, and waits for them as "batch run" ' +
      'does. Every other item keeps its outcome.',
    (batch, { includeUnknown, ...flags }: StartFlags & { readonly includeUnknown?: boolean }) => {
      const unknown = includeUnknown ? '' : ' --include-unknown also sends items whose delivery is unknown.';
      const nothingToDo = `Nothing to retry: in the batch ${batch.batchId}, no message is unsent or rejected.${unknown}`;
      const scope = includeUnknown
        ? 'messages of unknown delivery are sent again'
        : 'messages that may have arrived are not sent again';
      const status = session.command('batch', 'status', batch.batchId);
      const next = includeUnknown
        ? `A repeated retry sends messages of unknown delivery again, so check the batch first.\n  to check:   ${status}`
        : 'Run the same command again: it attaches to a running retry, and otherwise starts one.';
      const continuation = `The retry may have been started. ${next}`;
      return startAndWait(session, batch, flags, { nothingToDo, scope, continuation }, (settings) =>
        batch.retry({ includeUnknown, ...settings }),
      );
    },
  );
  addRunFlags(retry.option(...NO_WAIT), () => 'the value of the last run').option(
    '--include-unknown',
    'also send items whose delivery is unknown and items without a readable receipt; a message that did arrive is sent twice',
  );
  return batches;
}

async function printResults(session: Session, batch: BatchHandle): Promise<void> {
  session.isJsonLines = true;
  const { signal } = session;
  const results = await batch.listResults({ signal });
  for (const result of results) session.print(result, itemLine(result));
  const view = await batch.progress({ signal });
  const { state, message, summary } = view;
  const ended = `${results.length}${summary === null ? '' : ` of ${summary.items}`} ended`;
  if (session.isJson) session.print({ batchId: batch.batchId, ...view });
  else session.printStatus(`${ended}; the batch is ${state}${message === null ? '' : `: ${message}`}`);
}

async function cancelBatch(session: Session, batch: BatchHandle, cancelRunning: boolean): Promise<void> {
  const { batchId } = batch;
  const { signal } = session;
  session.continuation = MAY_TAKE_EFFECT;
  const { cancelResult, end } = await cancelAndWait(session, batch.cancel({ cancelRunning, signal }), () =>
    batch.result({ signal }),
  );
  const cancelled = cancelResult ?? 0;
  const document = { batchId, ended: end !== null, cancelled, end: end && { batchId, ...end } };
  if (session.isJson) session.print(document);
  else if (end !== null) printBatch(session, batchId, end);
  session.printStatus(
    cancelRunning
      ? `Cancelled ${pluralize(cancelled, 'running follow-up')} of the batch.`
      : `Follow-ups that were running continue. To list them, run ${session.command('list', '--batch', batchId)}`,
  );
}

type StartFlags = RunOptions & WaitFlags;

function addRunCommand(batches: Command, session: Session): void {
  const run = batches
    .command('run')
    .description(
      'Sends the follow-ups of a file, and waits for their jobs. If any line is invalid, nothing is sent. A second run with ' +
        'the same file continues the same batch, and sends no message twice.',
    )
    .argument('<file>', 'JSON Lines or CSV; - reads stdin')
    .option(
      '--batch-id <id>',
      'ID of the batch (default: a hash of its projects, jobs, prompts and request IDs)',
    )
    .option('--json', JSON_HELP);
  addFileFlags(addRunFlags(run.option(...NO_WAIT), (value) => `${value}, or the value of the last run`))
    .addHelpText(
      'after',
      `
A line of JSON Lines is one object with the fields of a request: {"project": "docs", "job": "job-1", "prompt": "…"}.
The first line of CSV names the columns. The fields and columns are ${COLUMNS.join(', ')}.

Example:
  $ ${session.command('batch', 'run', '-', '--prompt', 'Rebase on main.', '--max-failures', '5%', '--json')} < jobs.csv`,
    )
    .action(async (file: string, flags: StartFlags & FileFlags & { readonly batchId?: string }) => {
      const { batchId: name, concurrency, maxFailures, allowDuplicates } = flags;
      const batch = await readBatchFile(session.stdin, file, flags, (requests) =>
        checkBatch(requests, { batchId: name, concurrency, maxFailures, allowDuplicates }),
      );
      const { batchId, items } = batch;
      // The ID is printed before the start, so that an interrupted user can attach to the batch.
      session.printStatus(`batch       ${batchId} (${pluralize(items.length, 'item')})`);
      const another = name === undefined ? 'add --batch-id with a new ID' : 'use another --batch-id';
      const nothingToDo =
        `Nothing was sent, because these items have already run as the batch ${batchId}. To send the items without a request ID ` +
        `once more, ${another}.`;
      const { batches: client } = await session.connect();
      const scope = 'messages that may have arrived are not sent again';
      const continuation =
        'The batch was being submitted. To start the batch or to attach to it, run the same command again.';
      const texts = { nothingToDo, scope, continuation };
      await startAndWait(session, client.getHandle(batchId), flags, texts, (settings) =>
        client.start(batch, settings),
      );
    });
}

interface StartTexts {
  /** The text that is printed if nothing is started. */
  readonly nothingToDo: string;
  /** The text about messages that may have arrived, which is printed if the batch had ended and is started again. */
  readonly scope: string;
  /** The text that is printed if the command ends before the start is confirmed. */
  readonly continuation: string;
}

/** Starts a batch and waits for it. @param start returns null if nothing has to be started */
async function startAndWait(
  session: Session,
  batch: BatchHandle,
  { wait, concurrency, maxFailures }: StartFlags,
  { nothingToDo, scope, continuation }: StartTexts,
  start: (options: RunOptions & CallOptions) => Promise<StartedBatch | null>,
): Promise<void> {
  const { batchId } = batch;
  const { signal } = session;
  session.isJsonLines = wait;
  session.continuation = continuation;
  const started = await start({ concurrency, maxFailures, signal });
  session.continuation = batchContinuation(session, batchId);
  const { workflowId, attached = 'ended', resumedAfter = null } = started ?? {};
  if (workflowId !== undefined) await session.printWebUiLink(workflowId);
  if (resumedAfter !== null)
    session.printStatus(`resumed     the batch had ended (${resumedAfter}); ${scope}`);
  if (attached === 'running')
    session.printStatus('attached    this batch is already running with its own settings');
  if (attached === 'ended') session.printStatus(nothingToDo);
  if (wait) return waitForBatch(session, batch);
  session.print(started ?? { batchId, attached }, batchId);
  session.printStatus(`to watch    ${session.command('batch', 'watch', batchId)}`);
}
