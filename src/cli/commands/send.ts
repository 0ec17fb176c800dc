import { randomUUID } from 'node:crypto';
import { Command } from 'commander';
import type { NamedRequest, StartedFollowUp } from '../../client';
import { planOf } from '../../client/start';
import { addRequestFlags, type RequestFlags, requestOfFlags } from '../flags/request-flags';
import { readPrompt } from '../flags/prompt-source';
import { printOutcome } from '../render/outcome';
import type { Session } from '../session';
import { printLeft, waitForEnd } from '../wait';

interface SendFlags extends RequestFlags {
  readonly wait: boolean;
  readonly json?: boolean;
}

export function sendCommand(session: Session): Command {
  const command = new Command('send')
    .summary('send a message to an agent job, and wait for the job')
    .description(
      'Sends one message to an existing agent job, and waits until the agent has worked on it. The message is sent once, ' +
        'whatever fails on the way. Sending again with the same --request-id attaches to the first send.',
    )
    .option('--no-wait', 'print the workflow id instead of waiting for the end')
    .option('--json', 'print one JSON document: the result, or { type, message, details }');
  return addRequestFlags(command)
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('send')} --project docs --job job-1 --prompt "Please fix the broken link in README.md"
  $ ${session.command('send')} --project docs --job job-1 --prompt-file - --request-id order-4711 < message.txt
  $ ${session.command('send')} --project docs --job job-1 --prompt "…" --when-active wait --deadline 2h --json`,
    )
    .action((flags: SendFlags) => send(session, flags));
}

async function send(session: Session, flags: SendFlags): Promise<void> {
  const { output } = session;
  const json = flags.json === true;
  const requestId = flags.requestId ?? randomUUID();
  const request = requestOfFlags(flags, await readPrompt(flags, session.stdin), requestId);
  planOf(request);
  const followUps = await session.connect();
  // Printed before anything is started, so that an interrupted caller can attach by it.
  if (flags.requestId === undefined) {
    output.note(
      `request id  ${requestId} (new; with --request-id ${requestId} this command attaches to it again)`,
    );
  }
  // It was checked above, with the same checker.
  const started = await followUps.start(request as unknown as NamedRequest);
  await printStarted(session, started);

  if (!flags.wait) {
    if (json) output.json(started);
    else output.result(started.workflowId);
    output.note(`watch it    ${session.command('watch', started.workflowId)}`);
    return;
  }
  const waited = await waitForEnd(session, started.workflowId);
  if ('leftBy' in waited) {
    session.exitCode = printLeft(session, started.workflowId, waited.leftBy);
    return;
  }
  printOutcome(output, waited.ended, json);
  session.exitCode = waited.ended.exitCode;
}

async function printStarted(session: Session, started: StartedFollowUp): Promise<void> {
  const { output } = session;
  const { workflowId, attached, differences, promptCompared } = started;
  output.note(`workflow    ${workflowId}`);
  const page = await session.webUiPage(workflowId);
  if (page !== undefined) output.note(`web ui      ${page}`);
  if (attached === 'running')
    output.note('attached    a follow-up of this request id is running; nothing is sent again');
  if (attached === 'ended')
    output.note('attached    the follow-up of this request id has ended; this is its end');
  for (const difference of differences) {
    output.note(`note        the follow-up keeps its own options: ${difference}`);
  }
  if (!promptCompared) {
    output.note('note        the server no longer has its message, so the two could not be compared');
  }
}
