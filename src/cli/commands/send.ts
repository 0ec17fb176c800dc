import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { FollowUpHandle, NamedRequest } from '../../entries/client';
import { planFromRequest } from '../../client/start';
import { addRequestFlags, readPrompt, type RequestFlags, requestFromFlags } from '../flags/request-flags';
import type { Session } from '../session';
import { commandForRun, followUpContinuation, waitForFollowUp } from '../wait';

export const RESULT_JSON_HELP =
  'print one JSON document: the result, or { type, message, details, workflowId }';
export const NO_WAIT = ['--no-wait', 'print the ID and do not wait for the outcome'] as const;

export const RUN_ID = [
  '--run-id <id>',
  'a run of the follow-up, as send and retry print it (default: the latest run)',
] as const;

export interface WaitFlags {
  readonly wait: boolean;
}

export function addSendCommand(program: Command, session: Session): void {
  const command = program
    .command('send')
    .description(
      'Sends a message to an agent job, and waits for the job. The message is never sent twice, unless ' +
        '--on-unknown-delivery allows it. A second send with the same --request-id attaches to the first one.',
    )
    .option(...NO_WAIT)
    .option('--json', `${RESULT_JSON_HELP}; with --no-wait, the IDs of the run`);
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
      // The request is checked before the CLI connects.
      planFromRequest(request);
      session.continuation =
        'The follow-up may have been started. To start it or to attach to it, run the same command again with ' +
        `--request-id ${requestId}.`;
      const { signal } = session;
      const followUps = await session.connect();
      // The ID is printed before the start, so that an interrupted user can attach to the follow-up.
      if (flags.requestId === undefined)
        session.printStatus(
          `request ID  ${requestId} (generated; to attach to this follow-up later, add --request-id ${requestId})`,
        );
      const started = await followUps.start(request as unknown as NamedRequest, { signal });
      const { attached, promptCompared } = started;
      if (attached === 'running')
        session.printStatus(
          'attached    a follow-up with this request ID is already running with its own options; the message is not sent again',
        );
      if (attached === 'ended')
        session.printStatus(
          'attached    the follow-up with this request ID has already ended; the message is not sent again',
        );
      if (!promptCompared)
        session.printStatus(
          'note        the message of this follow-up is no longer stored, so the two messages could not be compared',
        );
      await waitIfRequested(session, started, { requestId, attached, promptCompared }, flags);
    });
}

/**
 * Waits for a run that was started. With `--no-wait`, prints the command that waits for it.
 *
 * @param facts further fields of the JSON document
 */
export async function waitIfRequested(
  session: Session,
  started: FollowUpHandle & { readonly runId: string },
  facts: object,
  { wait }: WaitFlags,
): Promise<void> {
  const { workflowId, runId } = started;
  session.continuation = followUpContinuation(session, started);
  session.printStatus(`workflow    ${workflowId}\nrun         ${runId}`);
  await session.printWebUiLink(workflowId);
  if (wait) return waitForFollowUp(session, started);
  session.print({ workflowId, runId, ...facts }, workflowId);
  session.printStatus(`to watch    ${commandForRun(session, 'watch', started)}`);
}
