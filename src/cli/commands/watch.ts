import { Command } from 'commander';
import { tellOutcome } from '../outcome';
import type { Session } from '../session';
import { tellLeft, waitForEnd } from '../wait';

export function watchCommand(session: Session): Command {
  return new Command('watch')
    .summary('wait for a follow-up, as send does')
    .description(
      'Shows the progress of a follow-up until it ends, and prints its end; its exit code is that of send.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option('--json', 'print one JSON document: the result, or { type, message, details }')
    .addHelpText('after', `\nExample:\n  $ ${session.command('watch', 'follow-up:docs:job-1:order-4711')}`)
    .action((workflowId: string, flags: { json?: boolean }) =>
      watch(session, workflowId, flags.json === true),
    );
}

async function watch(session: Session, workflowId: string, json: boolean): Promise<void> {
  const followUps = await session.connect();
  await followUps.describe(workflowId);
  const waited = await waitForEnd(session, workflowId);
  if ('leftBy' in waited) {
    session.exitCode = tellLeft(session, workflowId, waited.leftBy);
    return;
  }
  tellOutcome(session.output, waited.ended, json);
  session.exitCode = waited.ended.exitCode;
}
