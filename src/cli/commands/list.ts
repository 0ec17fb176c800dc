import { Command } from 'commander';
import type { FollowUpDescription } from '../../client';
import { PHASES } from '../../contract/progress';
import { table } from '../table';
import type { Session } from '../session';
import { UsageError } from '../usage-error';

interface ListFlags {
  readonly phase?: string;
  readonly project?: string;
  readonly job?: string;
  readonly batch?: string;
  readonly limit: string;
  readonly json?: boolean;
}

/** More would be read by no person, and is a matter for Temporal's own query tools. */
const MAX_LIMIT = 10_000;

export function listCommand(session: Session): Command {
  return new Command('list')
    .summary('follow-ups of the namespace')
    .description(
      "Lists follow-ups from Temporal's visibility store: those that run, then those that ended last. It is eventually consistent: what has just been started or has " +
        'just moved on may be missing or shown as it was a moment ago.',
    )
    .option('--phase <phase>', `only those in this phase: ${PHASES.join(', ')}`)
    .option('--project <id>', 'only those of this project')
    .option('--job <id>', 'only those to this job')
    .option('--batch <id>', 'only the items of this batch')
    .option('--limit <number>', `at most so many, 1 to ${MAX_LIMIT}`, '50')
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
    throw new UsageError([`--phase: ${JSON.stringify(phase)} is no phase; give one of ${PHASES.join(', ')}`]);
  }
  const followUps = await session.connect();
  const found = await followUps.list({
    ...(phase === undefined ? {} : { phase }),
    ...(project === undefined ? {} : { projectId: project }),
    ...(job === undefined ? {} : { jobId: job }),
    ...(batch === undefined ? {} : { batchId: batch }),
    limit,
  });
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
