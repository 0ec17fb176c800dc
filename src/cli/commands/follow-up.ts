import { Argument, type Command, Option } from 'commander';
import type { FollowUpDescription, FollowUpHandle, FollowUpProgress, Phase } from '../../entries/client';
import { DELIVERY_DECISIONS, type DeliveryDecision, PHASES } from '../../contract/result';
import { durationText } from '../../contract/duration';
import { awaitOutcome, printOutcome } from '../command-outcome';
import { parseDurationFlag, wholeNumberParser } from '../flags/request-flags';
import { optionalRows, progressRows, serverText } from '../render/follow-up';
import { columns, table } from '../render/text';
import type { Session } from '../session';
import { cancelAndWait, waitForFollowUp } from '../wait';
import { RESULT_JSON_HELP, waitIfRequested, NO_WAIT, type WaitFlags } from './send';

export function addFollowUpCommands(program: Command, session: Session): void {
  const addSubcommand = (
    name: string,
    description: string,
    json = 'print one JSON document: the progress',
  ): Command =>
    program
      .command(name)
      .argument('<workflow-id>', 'the ID that send prints, such as follow-up:docs:job-1:order-4711')
      .option('--json', json)
      .description(description);
  const getHandleFor = async (workflowId: string) => (await session.connect()).getHandle(workflowId);
  /** Returns an action that makes an update and prints the progress. */
  const updateAndPrint =
    <Value>(update: (followUp: FollowUpHandle, value: Value) => Promise<FollowUpProgress>) =>
    async (workflowId: string, value: Value): Promise<void> => {
      const progress = await update(await getHandleFor(workflowId), value);
      session.print(progress, columns(progressRows(session, workflowId, progress)));
    };
  addSubcommand(
    'retry',
    'Runs an ended follow-up again with the same ID, and waits for it as send does. The receipt must prove that ' +
      'the message was not sent or was rejected; otherwise, nothing is sent, and the command prints the reason.',
    RESULT_JSON_HELP,
  )
    .option(...NO_WAIT)
    .action(async (workflowId: string, flags: WaitFlags) => {
      const { runId } = await (await getHandleFor(workflowId)).retry();
      await waitIfRequested(session, { workflowId, runId }, flags);
    });
  addSubcommand(
    'watch',
    'Waits for a follow-up, and prints its progress and its outcome. The exit codes are those of send.',
    RESULT_JSON_HELP,
  ).action(async (workflowId: string) => {
    await (await getHandleFor(workflowId)).describe();
    await waitForFollowUp(session, workflowId);
  });
  addSubcommand(
    'status',
    'Prints the status of a follow-up. The exit code is 0 while the follow-up is running, and afterwards the exit code of send.',
    'print one JSON document: { workflowId, state, startedAt, progress, … } while the follow-up runs, and ' +
      '{ workflowId, state, startedAt, endedAt, end } afterwards',
  ).action(async (workflowId: string) => {
    const followUp = await getHandleFor(workflowId);
    const description = await followUp.describe();
    const { state, startedAt, endedAt } = description;
    if (state === 'running') return printRunning(session, followUp, description);
    const outcome = await awaitOutcome(followUp);
    const document = { workflowId, state, startedAt, endedAt, end: outcome.document };
    printOutcome(session, { ...outcome, document });
  });
  addListCommand(program, session);
  addSubcommand(
    'poll-now',
    'Makes the next request now (a read, or another try of the send), and prints the progress after it.',
  ).action(updateAndPrint((followUp) => followUp.pollNow()));
  addSubcommand('extend', 'Sets the deadline to now + the duration. The deadline never becomes earlier.')
    .argument('<duration>', 'a number with a unit: 90m, 24h, 7d', parseDurationFlag)
    .action(updateAndPrint((followUp, ms: number) => followUp.extendDeadline(durationText(ms))));
  addSubcommand(
    'resolve',
    'Decides whether a message of unknown delivery arrived, in the phase needs-decision. "delivered" watches the job. ' +
      '"not-delivered" reads the job again and, unless this read shows the message, sends it once more. The second message ' +
      'is a duplicate if the first one did arrive.',
  )
    .addArgument(new Argument('<decision>', 'whether the message arrived').choices(DELIVERY_DECISIONS))
    .action(updateAndPrint((followUp, decision: DeliveryDecision) => followUp.resolveDelivery(decision)));
  addSubcommand(
    'cancel',
    'Cancels a follow-up; the agent continues. The command waits for a POST in progress, so that the receipt states ' +
      'whether the message arrived.',
    'print one JSON document: { workflowId, ended, end }',
  ).action(async (workflowId: string) => {
    const followUp = await getHandleFor(workflowId);
    const { end } = await cancelAndWait(session, followUp.cancel(), () => awaitOutcome(followUp));
    session.print({ workflowId, ended: end !== null, end: end?.document ?? null });
    if (end !== null) session.printStatus(end.text);
    session.printStatus(
      'A cancellation does not stop the agent. If the message arrived, the agent continues.',
    );
  });
}

async function printRunning(
  session: Session,
  followUp: FollowUpHandle,
  { workflowId, state, startedAt, phase, jobStatus, workflowTaskFailure }: FollowUpDescription,
): Promise<void> {
  const report = await followUp.progress();
  const document = { workflowId, state, startedAt, workflowTaskFailure };
  if (report.from === 'worker') {
    const { progress } = report;
    const rows = [
      ...optionalRows('error', workflowTaskFailure),
      ...progressRows(session, workflowId, progress),
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
    ['workflow', workflowId],
  ]);
  session.print({ ...document, progress: null, phase, jobStatus, verdict, workers: report.workers }, text);
}

interface ListFlags {
  readonly phase?: Phase;
  readonly outcome?: string;
  readonly project?: string;
  readonly job?: string;
  readonly batch?: string;
  readonly limit: number;
}

/** The maximum of `--limit`. Temporal's own tools list more workflows. */
const MAX_LIMIT = 10_000;

function addListCommand(program: Command, session: Session): void {
  program
    .command('list')
    .description(
      'Lists the follow-ups of the namespace. Running follow-ups come first, then the others, with the latest end first. The list is ' +
        'eventually consistent: a recent start or change may be missing for some seconds.',
    )
    .addOption(new Option('--phase <phase>', 'only follow-ups in this phase').choices(PHASES))
    .option(
      '--outcome <outcome>',
      'only follow-ups with this outcome (completed, DeadlineExceeded, …) or this delivery verdict (unknown, not-sent, …)',
    )
    .option('--project <id>', 'only follow-ups of this project')
    .option('--job <id>', 'only follow-ups of this job')
    .option('--batch <id>', 'only the items of this batch')
    .option(
      '--limit <number>',
      `maximum number of follow-ups, 1 to ${MAX_LIMIT}`,
      wholeNumberParser(1, MAX_LIMIT),
      50,
    )
    .option('--json', 'print one JSON array')
    .action(async ({ phase, outcome, project: projectId, job: jobId, batch: batchId, limit }: ListFlags) => {
      const followUps = await session.connect();
      const found: FollowUpDescription[] = [];
      for await (const each of followUps.list({ phase, outcome, projectId, jobId, batchId })) {
        found.push(each);
        if (found.length === limit) break;
      }
      // A visibility list does not have these fields.
      const unknown = { receipt: undefined, workflowTaskFailure: undefined, startsAt: undefined };
      const headings = ['STARTED', 'PHASE', 'OUTCOME', 'DELIVERY', 'STATUS', 'PROJECT', 'JOB', 'WORKFLOW ID'];
      session.print(
        found.map((each) => ({ ...each, ...unknown })),
        table(headings, found.map(row)),
      );
      const more = found.length === limit ? ' (to list more, increase --limit)' : '';
      session.printStatus(`${found.length} found${more}; eventually consistent`);
    });
}

function row({ state, ...followUp }: FollowUpDescription): string[] {
  const { startedAt, phase, outcome, verdict, jobStatus, projectId, jobId, workflowId } = followUp;
  // The state replaces the phase, because a terminated workflow could not update its phase.
  const phaseOrState = state === 'terminated' || state === 'timed-out' ? state : (phase ?? state);
  const rest = [outcome, verdict, jobStatus, projectId, jobId].map((text) => text ?? '-');
  return [startedAt.slice(0, 19) + 'Z', phaseOrState, ...rest, workflowId];
}
