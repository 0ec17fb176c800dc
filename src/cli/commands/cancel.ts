import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { FollowUpEndedError } from '../../client';
import type { Session } from '../session';
import { endOf } from '../wait';

/** A worker ends a watch within a second; a message under way is awaited first, which we don't wait for. */
const END_WITHIN_MS = 10_000;

export function cancelCommand(session: Session): Command {
  return new Command('cancel')
    .summary('end the watch of a follow-up; the agent itself goes on')
    .description(
      'Ends a follow-up. What has been sent stays sent, and the agent itself goes on: its service has no operation to ' +
        'stop a job. A message under way is awaited first, so that the receipt can say what became of it.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option('--json', 'print one JSON document')
    .action((workflowId: string, flags: { json?: boolean }) =>
      cancel(session, workflowId, flags.json === true),
    );
}

async function cancel(session: Session, workflowId: string, json: boolean): Promise<void> {
  const { output } = session;
  const followUps = await session.connect();
  let already = false;
  try {
    await followUps.cancel(workflowId);
  } catch (error) {
    // To cancel what is cancelled is no error; to cancel what has another end is one.
    if (!(error instanceof FollowUpEndedError) || error.state !== 'cancelled') throw error;
    already = true;
  }
  const outcome = await Promise.race([
    endOf(followUps, workflowId),
    sleep(END_WITHIN_MS, undefined, { ref: false }),
  ]);
  if (json) output.json({ workflowId, ended: outcome !== undefined, end: outcome?.document ?? null });
  if (outcome === undefined) {
    output.note(
      'Cancellation is asked for. The follow-up ends when a message under way has been answered, and as soon as a worker polls its task queue.',
    );
  } else {
    output.note(already ? 'It was cancelled before.' : outcome.text);
  }
  output.note(
    'This ends the watch only: where the agent is at work on the message, it goes on. Its service has no operation to stop a job.',
  );
}
