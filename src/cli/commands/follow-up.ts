import { Argument, type Command } from 'commander';
import type { FollowUpDescription, FollowUpHandle, FollowUpProgress } from '../../entries/client';
import { DELIVERY_DECISIONS, type DeliveryDecision } from '../../contract/result';
import { durationText } from '../../contract/duration';
import { awaitOutcome, printOutcome } from '../command-outcome';
import { parseDurationFlag } from '../flags/request-flags';
import { optionalRows, progressRows, runRows, serverText } from '../render/follow-up';
import { columns } from '../render/text';
import type { Session } from '../session';
import { cancelAndWait, MAY_TAKE_EFFECT, waitForFollowUp } from '../wait';
import { addListCommand } from './list';
import { addRetryCommand } from './retry';
import { RESULT_JSON_HELP, RUN_ID } from './send';

export function addFollowUpCommands(program: Command, session: Session): void {
  const { signal } = session;
  const addSubcommand = (
    name: string,
    description: string,
    act: (followUp: FollowUpHandle, value: never) => Promise<void>,
    json = 'print one JSON document: the progress',
  ): Command =>
    program
      .command(name)
      .argument('<workflow-id>', 'the ID that send prints, such as follow-up:docs:job-1:order-4711')
      .option('--json', json)
      .option(...RUN_ID)
      .description(description)
      .action(async function (this: Command, workflowId: string, value: unknown) {
        const { runId } = this.opts<{ readonly runId?: string }>();
        await act((await session.connect()).getHandle(workflowId, runId), value as never);
      });
  /** Returns an action that makes an update and prints the progress. */
  const updateAndPrint =
    <Value>(update: (followUp: FollowUpHandle, value: Value) => Promise<FollowUpProgress>) =>
    async (followUp: FollowUpHandle, value: Value): Promise<void> => {
      session.continuation = MAY_TAKE_EFFECT;
      const progress = await update(followUp, value);
      session.print(progress, columns(progressRows(session, followUp, progress)));
    };
  addRetryCommand(program, session);
  addSubcommand(
    'watch',
    'Waits for a follow-up, and prints its progress and its outcome. The exit codes are those of send.',
    async (followUp) => {
      // Without a run ID, the command waits for the run that is the latest now.
      const { workflowId, runId } = await followUp.describe({ signal });
      await waitForFollowUp(session, (await session.connect()).getHandle(workflowId, runId));
    },
    RESULT_JSON_HELP,
  );
  addSubcommand(
    'status',
    'Prints the status of a follow-up. The exit code is 0 while the follow-up is running, and afterwards the exit code of send.',
    (followUp) => printStatus(session, followUp),
    'print one JSON document: { workflowId, runId, state, startedAt, progress, … } while the follow-up runs, and ' +
      '{ workflowId, runId, state, startedAt, endedAt, end } afterwards',
  );
  addListCommand(program, session);
  addSubcommand(
    'poll-now',
    'Makes the next request now (a read, or another try of the send), and prints the progress after it.',
    updateAndPrint((followUp) => followUp.pollNow({ signal })),
  );
  addSubcommand(
    'extend',
    'Sets the deadline to now + the duration. The deadline never becomes earlier.',
    updateAndPrint((followUp, ms: number) => followUp.extendDeadline(durationText(ms), { signal })),
  ).argument('<duration>', 'a number with a unit: 90m, 24h, 7d', parseDurationFlag);
  addSubcommand(
    'resolve',
    'Decides whether a message of unknown delivery arrived, in the phase needs-decision. "delivered" watches the job. ' +
      '"not-delivered" reads the job again and, unless this read shows the message, sends it once more. The second message ' +
      'is a duplicate if the first one did arrive.',
    updateAndPrint((followUp, decision: DeliveryDecision) => followUp.resolveDelivery(decision, { signal })),
  ).addArgument(new Argument('<decision>', 'whether the message arrived').choices(DELIVERY_DECISIONS));
  addSubcommand(
    'cancel',
    'Cancels a follow-up; the agent continues. The command waits up to 10 s for a POST in progress and for the receipt. ' +
      'After that, the cancellation continues without the command.',
    (followUp) => cancelFollowUp(session, followUp),
    'print one JSON document: { workflowId, ended, end }',
  );
}

async function printStatus(session: Session, given: FollowUpHandle): Promise<void> {
  const { signal } = session;
  const description = await given.describe({ signal });
  const { workflowId, runId, state, startedAt, endedAt } = description;
  const followUp = (await session.connect()).getHandle(workflowId, runId);
  if (state === 'running') return printRunning(session, followUp, description);
  const outcome = await awaitOutcome(followUp, signal);
  const document = { workflowId, runId, state, startedAt, endedAt, end: outcome.document };
  printOutcome(session, { ...outcome, document });
}

async function cancelFollowUp(session: Session, followUp: FollowUpHandle): Promise<void> {
  const { signal } = session;
  const { workflowId } = followUp;
  session.continuation = MAY_TAKE_EFFECT;
  const { end } = await cancelAndWait(session, followUp.cancel({ signal }), () =>
    awaitOutcome(followUp, signal),
  );
  session.print({ workflowId, ended: end !== null, end: end?.document ?? null });
  if (end !== null) session.printStatus(end.text);
  session.printStatus('A cancellation does not stop the agent. If the message arrived, the agent continues.');
}

async function printRunning(
  session: Session,
  followUp: FollowUpHandle,
  { workflowId, runId, state, startedAt, phase, jobStatus, workflowTaskFailure }: FollowUpDescription,
): Promise<void> {
  const report = await followUp.progress({ signal: session.signal });
  const document = { workflowId, runId, state, startedAt, workflowTaskFailure };
  if (report.from === 'worker') {
    const { progress } = report;
    const rows = [
      ...optionalRows('error', workflowTaskFailure),
      ...progressRows(session, followUp, progress),
    ];
    session.print({ ...document, progress }, columns(rows));
    return;
  }
  const { verdict } = report.description;
  const text = columns([
    ['status', serverText(report)],
    ...optionalRows(
      'delivery',
      verdict && `${verdict}; the worker that was sending the message has not reported the outcome`,
    ),
    ['started', startedAt],
    ...runRows(followUp),
  ]);
  session.print({ ...document, progress: null, phase, jobStatus, verdict, workers: report.workers }, text);
}
