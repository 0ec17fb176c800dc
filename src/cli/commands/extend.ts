import { Command } from 'commander';
import { type DurationText, parseDuration } from '../../contract/duration';
import { columns } from '../table';
import { progressRows } from '../progress-text';
import type { Session } from '../session';
import { UsageError } from '../usage-error';

export function extendCommand(session: Session): Command {
  return new Command('extend')
    .summary('move the deadline of a follow-up')
    .description('Moves the deadline to now + the duration, never to an earlier time than it has.')
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .argument('<duration>', 'a number with a unit: 90m, 24h, 7d')
    .option('--json', 'print the progress as one JSON document')
    .addHelpText(
      'after',
      `\nExample:\n  $ ${session.command('extend', 'follow-up:docs:job-1:order-4711', '12h')}`,
    )
    .action(async (workflowId: string, duration: string, flags: { json?: boolean }) => {
      const parsed = parseDuration(duration);
      if ('problem' in parsed) throw new UsageError([`duration: ${parsed.problem}`]);
      const followUps = await session.connect();
      const progress = await followUps.extendDeadline(workflowId, duration as DurationText);
      if (flags.json === true) session.output.json(progress);
      else session.output.result(columns([...progressRows(progress, Date.now()), ['workflow', workflowId]]));
    });
}
