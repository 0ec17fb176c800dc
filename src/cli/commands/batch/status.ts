import { Command } from 'commander';
import type { BatchClient, BatchDescription } from '../../../client';
import { documentOfBatch, exitCodeOfBatch, tellBatchOutcome } from '../../batch/outcome';
import { tellProgress } from '../../batch/tell-progress';
import { serverWords } from '../../batch/text';
import { columns } from '../../table';
import type { Session } from '../../session';

export function batchStatusCommand(session: Session): Command {
  return new Command('status')
    .summary('where a batch stands, or how it ended')
    .description(
      'Prints where a batch stands and exits with 0; of one that has ended it prints the end, with the exit code that ' +
        'run would have had.',
    )
    .argument('<batch>', 'batch id, or workflow id')
    .option(
      '--json',
      'print one JSON document: { batchId, state, progress }, or { batchId, state, message, summary } of one that has ended',
    )
    .addHelpText('after', `\nExample:\n  $ ${session.command('batch', 'status', 'nightly-07-31', '--json')}`)
    .action((batch: string, flags: { json?: boolean }) => status(session, batch, flags.json === true));
}

async function status(session: Session, batchId: string, json: boolean): Promise<void> {
  const { batches } = await session.connect();
  const description = await batches.describe(batchId);
  if (description.state === 'running') await tellRunning(session, batches, batchId, json);
  else await tellEnded(session, batches, batchId, description, json);
}

async function tellRunning(
  session: Session,
  batches: BatchClient,
  batchId: string,
  json: boolean,
): Promise<void> {
  const { output } = session;
  const report = await batches.report(batchId);
  if (report.from === 'worker') {
    const { progress } = report;
    if (json) output.json({ batchId: progress.batchId, state: 'running', progress });
    else tellProgress(session, progress, false);
    return;
  }
  const { workflowId, startedAt } = report.description;
  const followUps = await batches.countItems(batchId);
  if (json) {
    output.json({ batchId, state: 'running', progress: null, workers: report.workers, startedAt, followUps });
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

async function tellEnded(
  session: Session,
  batches: BatchClient,
  batchId: string,
  { workflowId, startedAt, endedAt }: BatchDescription,
  json: boolean,
): Promise<void> {
  const outcome = await batches.outcome(batchId);
  if (!json) {
    tellBatchOutcome(session, batchId, outcome, false);
    return;
  }
  session.exitCode = exitCodeOfBatch(outcome);
  session.output.json({ ...documentOfBatch(batchId, outcome), workflowId, startedAt, endedAt });
}
