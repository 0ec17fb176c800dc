import { randomUUID } from 'node:crypto';
import { Command } from 'commander';
import { InvalidRequestError, type NamedRequest } from '../../client';
import { checkRequest } from '../../core/check-request';
import { addRequestFlags, readPrompt, type RequestFlags, requestOfFlags } from '../flags/request-flags';
import type { Session } from '../session';
import { waitForEnd } from '../wait';

interface WaitFlags {
  readonly wait: boolean;
}

function addWaitFlags(command: Command): Command {
  return command
    .option('--no-wait', 'print the workflow id instead of waiting for the end')
    .option('--json', 'print one JSON document: the result, or { type, message, details }');
}

export function sendCommand(session: Session): Command {
  const command = new Command('send').description(
    'Sends a message to an agent job, and waits for the job. The message is sent once, whatever fails on the way. ' +
      'Sending again with the same --request-id attaches to the first send.',
  );
  return addRequestFlags(addWaitFlags(command))
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('send')} --project docs --job job-1 --prompt "Please fix the broken link in README.md"
  $ ${session.command('send')} --project docs --job job-1 --prompt-file - --request-id order-4711 < message.txt
  $ ${session.command('send')} --project docs --job job-1 --prompt "…" --when-active wait --deadline 2h --json`,
    )
    .action(async (flags: RequestFlags & WaitFlags) => {
      const { requestId = randomUUID() } = flags;
      const request = requestOfFlags({ ...flags, requestId, prompt: await readPrompt(flags, session.stdin) });
      const checked = checkRequest(request);
      if (!checked.ok) throw new InvalidRequestError(checked.problems);
      const followUps = await session.connect();
      // Printed before anything is started, so that an interrupted caller can attach by it.
      if (flags.requestId === undefined)
        session.note(
          `request id  ${requestId} (new; with --request-id ${requestId} this command attaches to it again)`,
        );
      // It was checked above, with the same checker.
      const started = await followUps.start(request as unknown as NamedRequest);
      const { attached, differences, promptCompared } = started;
      await printPage(session, started.workflowId);
      if (attached === 'running')
        session.note('attached    a follow-up of this request id is running; nothing is sent again');
      if (attached === 'ended')
        session.note('attached    the follow-up of this request id has ended; this is its end');
      for (const difference of differences)
        session.note(`note        the follow-up keeps its own options: ${difference}`);
      if (!promptCompared)
        session.note('note        the server no longer has its message, so the two could not be compared');
      await waitOrPrint(session, started, flags);
    });
}

export function retryCommand(session: Session): Command {
  const command = new Command('retry')
    .description(
      'Sends a message that was not sent or was rejected. Starts an ended follow-up once more under its own name, and ' +
        'waits for it as send does. Only a follow-up whose receipt proves that its message was not sent or was rejected is ' +
        'started; otherwise nothing happens, and the reason is printed.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI');
  return addWaitFlags(command).action(async (workflowId: string, flags: WaitFlags) => {
    const { runId } = await (await session.connect()).getHandle(workflowId).retry();
    await printPage(session, workflowId);
    await waitOrPrint(session, { workflowId, runId }, flags);
  });
}

async function printPage(session: Session, workflowId: string): Promise<void> {
  session.note(`workflow    ${workflowId}`);
  await session.notePage(workflowId);
}

async function waitOrPrint(
  session: Session,
  started: { readonly workflowId: string; readonly runId: string },
  { wait }: WaitFlags,
): Promise<void> {
  const { workflowId } = started;
  if (wait) return waitForEnd(session, workflowId);
  session.print(started, workflowId);
  session.note(`watch it    ${session.command('watch', workflowId)}`);
}
