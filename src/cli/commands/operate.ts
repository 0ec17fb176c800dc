import { setTimeout as sleep } from 'node:timers/promises';
import { Argument, Command } from 'commander';
import { hasCode } from '../../client';
import { DELIVERY_DECISIONS, type DeliveryDecision } from '../../core/result';
import { type DurationText, parseDuration } from '../../core/units';
import { UsageError } from '../exit-codes';
import { progressRows } from '../render/progress';
import { columns } from '../render/text';
import type { Session } from '../session';
import { endOf } from '../wait';

export function pollNowCommand(session: Session): Command {
  return new Command('poll-now')
    .summary('read the job now instead of at the next interval')
    .description('Reads the job of a follow-up now, and prints the progress after the read.')
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option('--json', 'print the progress as one JSON document')
    .action(async (workflowId: string, flags: { json?: boolean }) => {
      const followUps = await session.connect();
      const progress = await followUps.getHandle(workflowId).pollNow();
      if (flags.json === true) session.output.json(progress);
      else session.output.result(columns([...progressRows(progress, Date.now()), ['workflow', workflowId]]));
    });
}

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
      const progress = await followUps.getHandle(workflowId).extendDeadline(duration as DurationText);
      if (flags.json === true) session.output.json(progress);
      else session.output.result(columns([...progressRows(progress, Date.now()), ['workflow', workflowId]]));
    });
}

export function resolveCommand(session: Session): Command {
  return new Command('resolve')
    .summary('say whether a message of unknown delivery arrived')
    .description(
      'Decides for a follow-up in the phase needs-decision. "delivered" watches the job. "not-delivered" reads it again ' +
        'and sends the message once more, which is a duplicate if the first one did arrive.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .addArgument(new Argument('<decision>', 'what became of the message').choices(DELIVERY_DECISIONS))
    .option('--json', 'print the progress as one JSON document')
    .action(async (workflowId: string, decision: DeliveryDecision, flags: { json?: boolean }) => {
      const followUps = await session.connect();
      const progress = await followUps.getHandle(workflowId).resolveDelivery(decision);
      if (flags.json === true) session.output.json(progress);
      else session.output.result(columns([...progressRows(progress, Date.now()), ['workflow', workflowId]]));
    });
}

/** A worker ends a watch within a second, unless it first waits for a message under way; this command does not. */
const END_WITHIN_MS = 10_000;

export function cancelCommand(session: Session): Command {
  return new Command('cancel')
    .summary('end the watch of a follow-up; the agent continues')
    .description(
      'Ends a follow-up. A sent message stays sent, and the agent continues: its service has no operation to stop a ' +
        'job. A message under way is awaited first, so that the receipt can say whether it arrived.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option('--json', 'print one JSON document')
    .action((workflowId: string, flags: { json?: boolean }) =>
      cancel(session, workflowId, flags.json === true),
    );
}

async function cancel(session: Session, workflowId: string, json: boolean): Promise<void> {
  const { output } = session;
  const followUp = (await session.connect()).getHandle(workflowId);
  let already = false;
  try {
    await followUp.cancel();
  } catch (error) {
    // Cancelling a cancelled follow-up is not an error. Cancelling one that ended otherwise is.
    if (!hasCode(error, 'ALREADY_ENDED') || error.state !== 'cancelled') throw error;
    already = true;
  }
  const outcome = await Promise.race([endOf(followUp), sleep(END_WITHIN_MS, undefined, { ref: false })]);
  if (json) output.json({ workflowId, ended: outcome !== undefined, end: outcome?.document ?? null });
  if (outcome === undefined) {
    output.note(
      'Cancellation was requested. The follow-up ends when a message under way has been answered and a worker polls its task queue.',
    );
  } else {
    output.note(already ? 'It was already cancelled.' : outcome.text);
  }
  output.note(
    'This ends the watch only. If the agent is working on the message, it continues: its service has no operation to stop a job.',
  );
}
