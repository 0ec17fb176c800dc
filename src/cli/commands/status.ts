import { Command } from 'commander';
import type { FollowUpClient, FollowUpDescription } from '../../client';
import { tellOutcome } from '../outcome';
import { columns } from '../table';
import { progressRows, serverText } from '../progress-text';
import type { Session } from '../session';
import { endOf } from '../wait';

export function statusCommand(session: Session): Command {
  return new Command('status')
    .summary('where a follow-up stands, or how it ended')
    .description(
      'Prints where a follow-up stands and exits with 0; of one that has ended it prints the end, with the exit code ' +
        'that send would have had.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option(
      '--json',
      'print one JSON document: { workflowId, state, progress } or { workflowId, state, end }',
    )
    .addHelpText(
      'after',
      `\nExample:\n  $ ${session.command('status', 'follow-up:docs:job-1:order-4711', '--json')}`,
    )
    .action((workflowId: string, flags: { json?: boolean }) =>
      status(session, workflowId, flags.json === true),
    );
}

async function status(session: Session, workflowId: string, json: boolean): Promise<void> {
  const followUps = await session.connect();
  const description = await followUps.describe(workflowId);
  if (description.state === 'running') await tellRunning(session, followUps, description, json);
  else await tellEnded(session, followUps, description, json);
}

async function tellRunning(
  { output }: Session,
  followUps: FollowUpClient,
  description: FollowUpDescription,
  json: boolean,
): Promise<void> {
  const { workflowId, state, startedAt } = description;
  const report = await followUps.progress(workflowId);
  if (json) {
    const found =
      report.from === 'worker'
        ? { progress: report.progress }
        : {
            progress: null,
            phase: description.phase,
            jobStatus: description.jobStatus,
            workers: report.workers,
          };
    output.json({ workflowId, state, startedAt, ...found });
  } else if (report.from === 'worker') {
    output.result(columns([...progressRows(report.progress, Date.now()), ['workflow', workflowId]]));
  } else {
    output.result(
      columns([
        ['status', serverText(report)],
        ['started', startedAt],
        ['workflow', workflowId],
      ]),
    );
  }
}

async function tellEnded(
  session: Session,
  followUps: FollowUpClient,
  { workflowId, state, startedAt, endedAt }: FollowUpDescription,
  json: boolean,
): Promise<void> {
  const outcome = await endOf(followUps, workflowId);
  session.exitCode = outcome.exitCode;
  if (json) session.output.json({ workflowId, state, startedAt, endedAt, end: outcome.document });
  else tellOutcome(session.output, outcome, false);
}
