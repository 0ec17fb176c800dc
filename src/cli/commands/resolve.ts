import { Argument, Command } from 'commander';
import { DELIVERY_DECISIONS, type DeliveryDecision } from '../../contract/progress';
import { columns } from '../table';
import { progressRows } from '../progress-text';
import type { Session } from '../session';

export function resolveCommand(session: Session): Command {
  return new Command('resolve')
    .summary('say whether a message of unknown delivery arrived')
    .description(
      'Decides for a follow-up in the phase needs-decision: "delivered" has the job watched, "not-delivered" has it read ' +
        'again and the message sent once more, which makes it a duplicate if it did arrive.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .addArgument(new Argument('<decision>', 'what became of the message').choices(DELIVERY_DECISIONS))
    .option('--json', 'print the progress as one JSON document')
    .action(async (workflowId: string, decision: DeliveryDecision, flags: { json?: boolean }) => {
      const followUps = await session.connect();
      const progress = await followUps.resolveDelivery(workflowId, decision);
      if (flags.json === true) session.output.json(progress);
      else session.output.result(columns([...progressRows(progress, Date.now()), ['workflow', workflowId]]));
    });
}
