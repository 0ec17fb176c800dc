import { Command } from 'commander';
import { columns } from '../table';
import { progressRows } from '../progress-text';
import type { Session } from '../session';

export function pollNowCommand(session: Session): Command {
  return new Command('poll-now')
    .summary('read the job now instead of at the next interval')
    .description('Has the job of a follow-up read now, and prints the progress after the read.')
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option('--json', 'print the progress as one JSON document')
    .action(async (workflowId: string, flags: { json?: boolean }) => {
      const followUps = await session.connect();
      const progress = await followUps.pollNow(workflowId);
      if (flags.json === true) session.output.json(progress);
      else session.output.result(columns([...progressRows(progress, Date.now()), ['workflow', workflowId]]));
    });
}
