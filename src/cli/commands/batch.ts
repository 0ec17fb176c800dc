import { Command } from 'commander';
import type { BatchHandle, BatchProgress } from '../../client';
import { CONCURRENCY } from '../../core/batch/items';
import { counted } from '../../core/text';
import { wholeNumber } from '../flags/request-flags';
import {
  documentOfBatch,
  itemLine,
  printBatch,
  printBatchEnd,
  settledLine,
  standingOf,
  viewOf,
} from '../render/batch';
import type { Session } from '../session';
import { cancelAndWait } from '../wait';
import { addRetryCommand, addRunCommand, JSON_LINES_HELP, watchBatch } from './batch-run';

const DOCUMENT_HELP = 'print one JSON document: { batchId, state, message, summary }';

export function batchCommand(session: Session): Command {
  const batches = new Command('batch').description(
    'Sends many follow-ups, from a file, with limited concurrency. Workers do the work: a batch continues when this ' +
      'program ends. A batch is named by its batch id, or by its workflow id.',
  );
  const verb = (name: string, description: string, json = DOCUMENT_HELP): Command =>
    batches
      .command(name)
      .argument('<batch>', 'batch id, or workflow id')
      .option('--json', json)
      .description(description);
  const handleOf = async (batchId: string) => (await session.connect()).batches.getHandle(batchId);
  /** The action of a command that answers with the progress after it. */
  const changing =
    (change: (batch: BatchHandle, value: number) => Promise<BatchProgress>) =>
    async (batchId: string, value: number): Promise<void> => {
      printBatch(session, batchId, viewOf(await change(await handleOf(batchId), value)));
    };
  addRunCommand(batches, session);
  verb(
    'status',
    'Prints where a batch stands, or how it ended. The exit code is 0 while it runs, and that of run after its end.',
  ).action(async (batchId: string) => {
    const batch = await handleOf(batchId);
    if ((await batch.describe()).state === 'running')
      printBatch(session, batchId, standingOf(await batch.progress()));
    else printBatchEnd(session, batchId, await batch.result());
  });
  verb(
    'watch',
    'Waits for a batch, as run does. Shows its progress until it ends, and prints its end. The exit code is that of run.',
    JSON_LINES_HELP,
  ).action((batchId: string) => watchBatch(session, batchId));
  verb(
    'results',
    'Prints how each item of a batch has ended so far. There is a line for each item that has settled, in the order of ' +
      'settling. It does not wait for a batch that runs; "batch watch --json" does. It needs no worker.',
    JSON_LINES_HELP,
  ).action(async (batchId: string) => results(session, await handleOf(batchId)));
  verb('pause', 'Starts no further item of a batch until it is resumed; open ones continue.').action(
    changing((batch) => batch.pause()),
  );
  verb(
    'resume',
    'Continues a paused batch. To resume a batch that has ended, use "batch run" with the same file.',
  ).action(changing((batch) => batch.resume()));
  const { minimum, maximum } = CONCURRENCY;
  verb(
    'concurrency',
    'Changes how many follow-ups of a running batch are open at a time. A lower number ends none of them: no item starts ' +
      'until fewer are open.',
  )
    .argument('<concurrency>', `${minimum} to ${maximum}`, wholeNumber(minimum, maximum))
    .action(changing((batch, concurrency) => batch.setConcurrency(concurrency)));
  verb(
    'cancel',
    'Ends a batch; its open follow-ups continue. Nothing further is started. Open follow-ups can be listed and cancelled ' +
      'one by one. "batch run" with the same file continues the batch.',
    'print one JSON document: { batchId, ended, cancelled, end }',
  )
    .option(
      '--cancel-running',
      'cancel every open follow-up that the batch has started too, also if it has ended; messages under way are awaited ' +
        'first, and the agents themselves continue',
    )
    .action(async (batchId: string, { cancelRunning = false }: { readonly cancelRunning?: boolean }) =>
      cancel(session, await handleOf(batchId), cancelRunning),
    );
  addRetryCommand(batches, session);
  return batches;
}

async function results(session: Session, batch: BatchHandle): Promise<void> {
  session.jsonLines = true;
  const ends = await batch.settled();
  for (const end of ends) session.print(end, itemLine(end));
  const isRunning = (await batch.describe()).state === 'running';
  const view = isRunning ? standingOf(await batch.progress()) : await batch.result();
  if (session.isJson) session.print(documentOfBatch(batch.batchId, view));
  else session.note(settledLine(ends.length, view));
}

async function cancel(session: Session, batch: BatchHandle, followUps: boolean): Promise<void> {
  const { batchId } = batch;
  const { answer, end } = await cancelAndWait(session, batch.cancel({ followUps }), () => batch.result());
  const cancelled = answer ?? 0;
  const document = end && documentOfBatch(batchId, end);
  if (session.isJson) session.print({ batchId, ended: end !== null, cancelled, end: document });
  else if (end !== null) printBatch(session, batchId, end);
  session.note(
    followUps
      ? `Cancelled ${counted(cancelled, 'open follow-up')} that the batch had started.`
      : `Follow-ups that were open continue; see them with ${session.command('list', '--batch', batchId)}`,
  );
}
