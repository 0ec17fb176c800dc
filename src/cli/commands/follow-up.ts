import { Command } from 'commander';
import type { FollowUpDescription, FollowUpHandle } from '../../client';
import { PHASES } from '../../core/result';
import { UsageError } from '../exit-codes';
import { printOutcome } from '../render/outcome';
import { progressRows, serverText } from '../render/progress';
import { columns, table } from '../render/text';
import type { Session } from '../session';
import { endOf, printLeft, waitForEnd } from '../wait';

export function statusCommand(session: Session): Command {
  return new Command('status')
    .summary('where a follow-up stands, or how it ended')
    .description(
      'Prints where a follow-up stands and exits with 0. If it has ended, prints the end and exits as send would have.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option(
      '--json',
      'print one JSON document: { workflowId, state, progress } or { workflowId, state, end }',
    )
    .addHelpText(
      'after',
      `\nExample:\n  $ ${session.command('status', 'follow-up:docs:job-1:order-4711', '--json')}`,
    )
    .action((workflowId: string, flags: { json?: boolean }) =>
      status(session, workflowId, flags.json === true),
    );
}

async function status(session: Session, workflowId: string, json: boolean): Promise<void> {
  const followUp = (await session.connect()).getHandle(workflowId);
  const description = await followUp.describe();
  if (description.state === 'running') await printRunning(session, followUp, description, json);
  else await printEnded(session, followUp, description, json);
}

async function printRunning(
  { output }: Session,
  followUp: FollowUpHandle,
  description: FollowUpDescription,
  json: boolean,
): Promise<void> {
  const { workflowId, state, startedAt } = description;
  const report = await followUp.progress();
  if (json) {
    const found =
      report.from === 'worker'
        ? { progress: report.progress }
        : {
            progress: null,
            phase: description.phase,
            jobStatus: description.jobStatus,
            workers: report.workers,
          };
    output.json({ workflowId, state, startedAt, ...found });
  } else if (report.from === 'worker') {
    output.result(columns([...progressRows(report.progress, Date.now()), ['workflow', workflowId]]));
  } else {
    output.result(
      columns([
        ['status', serverText(report)],
        ['started', startedAt],
        ['workflow', workflowId],
      ]),
    );
  }
}

async function printEnded(
  session: Session,
  followUp: FollowUpHandle,
  { workflowId, state, startedAt, endedAt }: FollowUpDescription,
  json: boolean,
): Promise<void> {
  const outcome = await endOf(followUp);
  session.exitCode = outcome.exitCode;
  if (json) session.output.json({ workflowId, state, startedAt, endedAt, end: outcome.document });
  else printOutcome(session.output, outcome, false);
}

export function watchCommand(session: Session): Command {
  return new Command('watch')
    .summary('wait for a follow-up, as send does')
    .description(
      'Shows the progress of a follow-up until it ends, and prints its end. The exit code is that of send.',
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
  await followUps.getHandle(workflowId).describe();
  const waited = await waitForEnd(session, workflowId);
  if ('leftBy' in waited) {
    session.exitCode = printLeft(session, workflowId, waited.leftBy);
    return;
  }
  printOutcome(session.output, waited.ended, json);
  session.exitCode = waited.ended.exitCode;
}

interface ListFlags {
  readonly phase?: string;
  readonly project?: string;
  readonly job?: string;
  readonly batch?: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** Nobody reads more than this; Temporal's own query tools are made for it. */
const MAX_LIMIT = 10_000;

export function listCommand(session: Session): Command {
  return new Command('list')
    .summary('follow-ups of the namespace')
    .description(
      "Lists follow-ups from Temporal's visibility store: running ones first, then those that ended last. The list is " +
        'eventually consistent: a recent start or change may not be shown yet.',
    )
    .option('--phase <phase>', `only those in this phase: ${PHASES.join(', ')}`)
    .option('--project <id>', 'only those of this project')
    .option('--job <id>', 'only those to this job')
    .option('--batch <id>', 'only the items of this batch')
    .option('--limit <number>', `how many to list at most, 1 to ${MAX_LIMIT}`, '50')
    .option('--json', 'print one JSON array')
    .addHelpText(
      'after',
      `\nExample:\n  $ ${session.command('list', '--phase', 'watching', '--project', 'docs')}`,
    )
    .action((flags: ListFlags) => list(session, flags));
}

async function list(session: Session, flags: ListFlags): Promise<void> {
  const { phase, project, job, batch } = flags;
  const limit = limitOf(flags.limit);
  if (phase !== undefined && !PHASES.some((known) => known === phase)) {
    throw new UsageError([
      `--phase: ${JSON.stringify(phase)} is not a phase; give one of ${PHASES.join(', ')}`,
    ]);
  }
  const followUps = await session.connect();
  const listed = followUps.list({
    ...(phase === undefined ? {} : { phase }),
    ...(project === undefined ? {} : { projectId: project }),
    ...(job === undefined ? {} : { jobId: job }),
    ...(batch === undefined ? {} : { batchId: batch }),
  });
  const found: FollowUpDescription[] = [];
  for await (const followUp of listed) {
    found.push(followUp);
    if (found.length === limit) break;
  }
  const { output } = session;
  if (flags.json === true) {
    output.json(found);
    return;
  }
  if (found.length > 0) output.result(table(HEADINGS, found.map(row)));
  output.note(
    found.length === 0
      ? 'No follow-ups found. The list is eventually consistent: one that was just started appears within seconds.'
      : `${found.length}${found.length === limit ? ' (--limit shows more)' : ''}; eventually consistent`,
  );
}

const HEADINGS = ['STARTED', 'PHASE', 'STATUS', 'PROJECT', 'JOB', 'WORKFLOW ID'];

function row({
  startedAt,
  phase,
  state,
  jobStatus,
  projectId,
  jobId,
  workflowId,
}: FollowUpDescription): string[] {
  // A terminated workflow could not set its phase any more.
  const stands = state === 'terminated' || state === 'timed-out' ? state : (phase ?? state);
  return [startedAt.slice(0, 19) + 'Z', stands, jobStatus ?? '-', projectId ?? '-', jobId ?? '-', workflowId];
}

function limitOf(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : NaN;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new UsageError([
    `--limit: must be a whole number from 1 to ${MAX_LIMIT}; it is ${JSON.stringify(text)}`,
  ]);
}
