import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import type { FollowUpError } from '../../client';
import { QUERY_TIMEOUT_MS } from '../../client/progress';
import { CONCURRENCY } from '../../core/batch';
import { type BatchProgress, summaryOfProgress } from '../../core/batch-workflows';
import { concurrencyOf } from '../flags/batch-flags';
import {
  documentOfBatch,
  exitCodeOfBatch,
  failureLines,
  itemLine,
  serverWords,
  summaryTable,
  printBatchOutcome,
  printProgress,
} from '../render/batch-text';
import { columns } from '../render/text';
import type { Session } from '../session';
import { batchRetryCommand, batchRunCommand, batchWatchCommand } from './batch-run';
import { type BatchDescription, type BatchHandle, hasCode, type ItemEnd, NoAnswerError } from '../../client';

/** The subcommands in the order of `batch --help`. */
const COMMANDS = [
  batchRunCommand,
  batchStatusCommand,
  batchWatchCommand,
  batchResultsCommand,
  batchPauseCommand,
  batchResumeCommand,
  batchConcurrencyCommand,
  batchCancelCommand,
  batchRetryCommand,
];

export function batchCommand(session: Session): Command {
  const command = new Command('batch')
    .summary('many follow-ups at a time, from a file')
    .description(
      'Sends the follow-ups of a file with limited concurrency. Workers do the work: a batch goes on when this program ' +
        'ends. A batch is named by its batch id, or by its workflow id.',
    );
  for (const createCommand of COMMANDS) command.addCommand(createCommand(session));
  return command;
}

function batchStatusCommand(session: Session): Command {
  return new Command('status')
    .summary('where a batch stands, or how it ended')
    .description(
      'Prints where a batch stands and exits with 0. If the batch has ended, it prints the end and exits as run would ' +
        'have.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--json',
      'print one JSON document: { batchId, state, progress }, or { batchId, state, message, summary } if it has ended',
    )
    .addHelpText('after', `\nExample:\n  $ ${session.command('batch', 'status', 'nightly-07-31', '--json')}`)
    .action((batch: string, flags: { json?: boolean }) => status(session, batch, flags.json === true));
}

async function status(session: Session, batchId: string, json: boolean): Promise<void> {
  const batch = (await session.connect()).batches.getHandle(batchId);
  const description = await batch.describe();
  if (description.state === 'running') await printRunning(session, batch, json);
  else await printEnded(session, batch, description, json);
}

async function printRunning(session: Session, batch: BatchHandle, json: boolean): Promise<void> {
  const { output } = session;
  const { batchId } = batch;
  const report = await batch.progress();
  if (report.from === 'worker') {
    const { progress } = report;
    if (json) output.json({ batchId: progress.batchId, state: 'running', progress });
    else printProgress(session, progress, false);
    return;
  }
  const { workers, followUps } = report;
  const { workflowId, startedAt } = report.description;
  if (json) {
    output.json({ batchId, state: 'running', progress: null, workers, startedAt, followUps });
    return;
  }
  const counts = Object.entries(followUps ?? {}).map(([state, count]) => `${state} × ${count}`);
  output.result(
    columns([
      ['batch', batchId],
      ['status', serverWords(report)],
      ...(followUps === null
        ? []
        : [['follow-ups', counts.length === 0 ? 'none yet' : counts.join(', ')] as [string, string]]),
      ['started', startedAt],
      ['workflow', workflowId],
    ]),
  );
}

async function printEnded(
  session: Session,
  batch: BatchHandle,
  { workflowId, startedAt, endedAt }: BatchDescription,
  json: boolean,
): Promise<void> {
  const { batchId } = batch;
  const outcome = await batch.result();
  if (!json) {
    printBatchOutcome(session, batchId, outcome, false);
    return;
  }
  session.exitCode = exitCodeOfBatch(outcome);
  session.output.json({ ...documentOfBatch(batchId, outcome), workflowId, startedAt, endedAt });
}

function batchResultsCommand(session: Session): Command {
  return new Command('results')
    .summary('how each item of a batch has ended so far')
    .description(
      'Prints a line for each item that has settled, in the order of settling, and how many there are. It does not wait ' +
        'for a batch that runs; "batch watch --json" does.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option('--json', 'print JSON lines: one per item, and { batchId, state, message, summary } at the end')
    .addHelpText(
      'after',
      `\nExample:\n  $ ${session.command('batch', 'results', 'nightly-07-31', '--json')} | jq -r 'select(.prLink) | .prLink'`,
    )
    .action((batch: string, flags: { json?: boolean }) => results(session, batch, flags.json === true));
}

async function results(session: Session, batchId: string, json: boolean): Promise<void> {
  const { output } = session;
  const batch = (await session.connect()).batches.getHandle(batchId);
  output.jsonLines = json;
  const { ends, trouble } = await readEnds(batch);
  for (const end of ends) {
    if (json) output.json(end);
    else output.result(itemLine(end));
  }
  if (trouble !== null) throw trouble;
  const last = await summaryOf(batch);
  if (json) {
    output.json(last);
    return;
  }
  const { state, summary } = last;
  output.note(
    `${ends.length}${summary === null ? '' : ` of ${summary.items}`} settled; the batch is ${state}`,
  );
}

/** The ends that can be read, and why the others can't be. */
async function readEnds(
  batch: BatchHandle,
): Promise<{ readonly ends: readonly ItemEnd[]; readonly trouble: FollowUpError | null }> {
  try {
    return { ends: await batch.settled(), trouble: null };
  } catch (error) {
    if (!hasCode(error, 'RESULTS_UNREADABLE')) throw error;
    return { ends: error.ends ?? [], trouble: error };
  }
}

/** The last line: how the batch has ended, or where it stands, in the same form. */
async function summaryOf(batch: BatchHandle) {
  const { batchId } = batch;
  const { state } = await batch.describe();
  if (state !== 'running') return documentOfBatch(batchId, await batch.result());
  const report = await batch.progress();
  if (report.from === 'server') {
    const { workflowId, taskQueue } = report.description;
    throw new NoAnswerError(workflowId, taskQueue, report.workers, QUERY_TIMEOUT_MS);
  }
  const { progress } = report;
  return documentOfBatch(batchId, {
    state: progress.state,
    message: null,
    summary: summaryOfProgress(progress, null),
  });
}

/** A batch ends within a second, unless it first waits for messages under way; this command does not wait for those. */
const END_WITHIN_MS = 10_000;

interface CancelFlags {
  readonly cancelRunning?: boolean;
  readonly json?: boolean;
}

function batchCancelCommand(session: Session): Command {
  return new Command('cancel')
    .summary('end a batch; its open follow-ups go on')
    .description(
      'Ends a batch: nothing further is started. Open follow-ups go on to their ends, and can be listed and ' +
        'cancelled one by one. "batch run" with the same file goes on with it.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--cancel-running',
      'cancel every open follow-up that the batch has started too, also if it has ended; messages under way are awaited ' +
        'first, and the agents themselves go on',
    )
    .option('--json', 'print one JSON document')
    .action((batch: string, flags: CancelFlags) => cancel(session, batch, flags));
}

async function cancel(session: Session, batchId: string, flags: CancelFlags): Promise<void> {
  const { output } = session;
  const batch = (await session.connect()).batches.getHandle(batchId);
  const followUps = flags.cancelRunning === true;
  let already = false;
  let cancelled = 0;
  try {
    cancelled = await batch.cancel({ followUps });
  } catch (error) {
    // Cancelling a cancelled batch is not an error. Cancelling one that ended otherwise is.
    if (!hasCode(error, 'ALREADY_ENDED') || error.state !== 'cancelled') throw error;
    already = true;
  }
  const outcome = await Promise.race([batch.result(), sleep(END_WITHIN_MS, undefined, { ref: false })]);
  if (flags.json === true) {
    const end = outcome === undefined ? null : documentOfBatch(batchId, outcome);
    output.json({ batchId, ended: outcome !== undefined, ...(followUps ? { cancelled } : {}), end });
  } else if (outcome?.summary) {
    output.result(columns([['batch', batchId], ['state', outcome.state], ...summaryTable(outcome.summary)]));
    for (const line of failureLines(outcome.summary.firstFailures)) output.result(line);
  }
  if (outcome === undefined) {
    output.note(
      'Cancellation was requested. The batch ends when messages under way have been answered and a worker polls its task queue.',
    );
  } else if (already) {
    output.note('It was already cancelled.');
  }
  if (followUps) {
    output.note(
      `Cancelled ${cancelled} open follow-${cancelled === 1 ? 'up' : 'ups'} that the batch had started.`,
    );
  } else {
    output.note(
      `Follow-ups that were open go on; see them with ${session.command('list', '--batch', batchId)}`,
    );
  }
}

/** A command that changes a running batch, and prints where it stands. */
function changeCommand(
  session: Session,
  [name, summary, description]: readonly [name: string, summary: string, description: string],
  change: (batch: BatchHandle) => Promise<BatchProgress>,
): Command {
  return new Command(name)
    .summary(summary)
    .description(`${description} Prints where it stands.`)
    .argument('<batch>', 'batch id, or workflow id')
    .option('--json', 'print the progress as one JSON document')
    .action(async (batch: string, flags: { json?: boolean }) => {
      const { batches } = await session.connect();
      printProgress(session, await change(batches.getHandle(batch)), flags.json === true);
    });
}

function batchPauseCommand(session: Session): Command {
  const description = 'Stops a batch from starting further items; open ones go on to their ends.';
  const words = ['pause', 'start no further item of a batch until it is resumed', description] as const;
  return changeCommand(session, words, (batch) => batch.pause());
}

function batchResumeCommand(session: Session): Command {
  const description =
    'Lets a paused batch start items again. To resume a batch that has ended, use "batch run" with the same file.';
  const words = ['resume', 'go on with a batch that is paused', description] as const;
  return changeCommand(session, words, (batch) => batch.resume());
}

function batchConcurrencyCommand(session: Session): Command {
  return new Command('concurrency')
    .summary('change how many follow-ups of a batch are open at a time')
    .description(
      'Changes how many follow-ups of a running batch are open at a time. A lower number ends none of them: no item ' +
        'starts until fewer are open. Prints where it stands.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .argument('<n>', `${CONCURRENCY.minimum} to ${CONCURRENCY.maximum}`)
    .option('--json', 'print the progress as one JSON document')
    .action(async (batch: string, places: string, flags: { json?: boolean }) => {
      const concurrency = concurrencyOf(places);
      const { batches } = await session.connect();
      printProgress(session, await batches.getHandle(batch).setConcurrency(concurrency), flags.json === true);
    });
}
