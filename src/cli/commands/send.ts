import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { NamedRequest } from '../../entries/client';
import { planFromRequest } from '../../client/start';
import { addRequestFlags, readPrompt, type RequestFlags, requestFromFlags } from '../flags/request-flags';
import type { Session } from '../session';
import { waitForFollowUp } from '../wait';

export const RESULT_JSON_HELP = 'print one JSON document: the result, or { type, message, details }';
export const NO_WAIT = ['--no-wait', 'print the id instead of waiting for the end'] as const;

export interface WaitFlags {
  readonly wait: boolean;
}

export function addSendCommand(program: Command, session: Session): void {
  const command = program
    .command('send')
    .description(
      'Sends a message to an agent job, and waits for the job. The message is sent once, whatever fails on the way. ' +
        'Sending again with the same --request-id attaches to the first send.',
    )
    .option(...NO_WAIT)
    .option('--json', RESULT_JSON_HELP);
  const send = session.command('send');
  addRequestFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  $ ${send} --project docs --job job-1 --prompt "Please fix the broken link in README.md"
  $ ${send} --project docs --job job-1 --prompt-file - --request-id order-4711 < message.txt
  $ ${send} --project docs --job job-1 --prompt "…" --when-active wait --deadline 2h --json`,
    )
    .action(async (flags: RequestFlags & WaitFlags) => {
      const { requestId = randomUUID() } = flags;
      const request = requestFromFlags({
        ...flags,
        requestId,
        prompt: await readPrompt(flags, session.stdin),
      });
      // Before it connects.
      planFromRequest(request);
      const followUps = await session.connect();
      // Before it starts, so that an interrupted caller can attach by it.
      if (flags.requestId === undefined)
        session.printStatus(
          `request id  ${requestId} (new; with --request-id ${requestId} this command attaches to it again)`,
        );
      const started = await followUps.start(request as unknown as NamedRequest);
      const { attached, promptCompared } = started;
      if (attached === 'running')
        session.printStatus(
          'attached    a follow-up of this request id is running, with its own options; nothing is sent again',
        );
      if (attached === 'ended')
        session.printStatus('attached    the follow-up of this request id has ended; this is its end');
      if (!promptCompared)
        session.printStatus(
          'note        the server no longer has its message, so the two could not be compared',
        );
      await waitIfRequested(session, started, flags);
    });
}

/** Waits for a follow-up that was started, or says how to. */
export async function waitIfRequested(
  session: Session,
  started: { readonly workflowId: string; readonly runId: string },
  { wait }: WaitFlags,
): Promise<void> {
  const { workflowId } = started;
  session.printStatus(`workflow    ${workflowId}`);
  await session.printWebUiLink(workflowId);
  if (wait) return waitForFollowUp(session, workflowId);
  session.print(started, workflowId);
  session.printStatus(`watch it    ${session.command('watch', workflowId)}`);
}
