import type { Command } from 'commander';
import { type FollowUpClient, type FollowUpFilter, hasCode, type RetryResult } from '../../entries/client';
import { invalidFieldError, throwIfProblems } from '../../client/errors';
import type { NamedRun } from '../../client/named-run';
import type { Problem } from '../../contract/checks';
import { pluralize } from '../../contract/text';
import { commandOutcomeFromError, EXIT_CODE } from '../command-outcome';
import { addFilterFlags, type FilterFlags, filterFromFlags } from '../flags/filter-flags';
import { wholeNumberParser } from '../flags/request-flags';
import type { Session } from '../session';
import { commandForRun } from '../wait';
import { NO_WAIT, RUN_ID, waitIfRequested, type WaitFlags } from './send';

interface RetryFlags extends FilterFlags, WaitFlags {
  readonly dryRun?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly runId?: string | undefined;
}

export function addRetryCommand(program: Command, session: Session): void {
  const command = program
    .command('retry')
    .argument(
      '[workflow-id]',
      'the follow-up; without this ID, the command retries every follow-up that matches the options and may be sent again',
    )
    .option(
      '--json',
      'print one JSON document as send does; without a workflow ID, print one line per follow-up and a last line with the counts',
    )
    .description(
      'Runs ended follow-ups again with the same IDs. The receipt must prove that the message was not sent or was rejected; ' +
        'otherwise, nothing is sent, and the command prints the reason. With a workflow ID, the command waits as send does.',
    )
    .option(...NO_WAIT)
    .option(...RUN_ID)
    .option('--dry-run', 'print the follow-ups that the command would retry, and send nothing')
    .option(
      '--limit <number>',
      'maximum number of follow-ups (default: unlimited)',
      wholeNumberParser(1, Number.MAX_SAFE_INTEGER),
    );
  const retry = session.command('retry');
  addFilterFlags(command)
    .addHelpText(
      'after',
      `
Without a workflow ID, at least one option must restrict the follow-ups. Such a command does not wait for the outcomes. Cancelled
follow-ups are retried only with --outcome cancelled. Follow-ups of unknown delivery are never retried. The command can be repeated.
The exit code is 1 if the retry of a follow-up failed. A skipped follow-up (it runs again, or was already retried) is not a failure.

Examples:
  $ ${retry} follow-up:docs:job-1:order-4711
  $ ${retry} --outcome FollowUpRejected --ended-after 2h --dry-run
  $ ${retry} --outcome FollowUpRejected --ended-after 2026-11-21T03:00:00Z --ended-before 2026-11-21T05:30:00Z`,
    )
    .action(async (workflowId: string | undefined, flags: RetryFlags) => {
      const { wait, dryRun, limit, runId, ...filterFlags } = flags;
      const filter = filterFromFlags(filterFlags);
      const isFiltered = Object.values(filter).some((value) => value !== undefined);
      if (workflowId !== undefined) {
        throwIfProblems(optionProblems(command));
        return retryOne(session, { workflowId, runId }, { wait });
      }
      if (runId !== undefined)
        throw invalidFieldError('--run-id', 'needs a workflow ID; add the ID of the follow-up');
      if (!isFiltered)
        throw invalidFieldError(
          'WORKFLOW-ID',
          'is missing; add the ID, or options such as --outcome and --ended-after',
        );
      await retryMatching(session, await session.connect(), filter, { dryRun, limit });
    });
}

const OPTIONS_WITH_WORKFLOW_ID = ['json', 'timeout', 'wait', 'runId'];

/** Returns a problem for each given option that is not allowed with a workflow ID. */
function optionProblems(command: Command): Problem[] {
  return command.options
    .filter((option) => !OPTIONS_WITH_WORKFLOW_ID.includes(option.attributeName()))
    .filter((option) => command.getOptionValue(option.attributeName()) !== undefined)
    .map((option) => ({
      field: `--${option.name()}`,
      text: 'is not allowed with a workflow ID; remove this option or the ID',
    }));
}

async function retryOne(session: Session, run: NamedRun, flags: WaitFlags): Promise<void> {
  const { signal } = session;
  const { workflowId, runId } = run;
  // The command `watch` has no run ID, because the ID of the new run is not known yet.
  const [watch, again] = [session.command('watch', workflowId), commandForRun(session, 'retry', run)];
  session.continuation = `The follow-up may have been started again.\n  to watch:   ${watch}\n  to retry:   ${again}`;
  const retried = await (await session.connect()).getHandle(workflowId, runId).retry({ signal });
  await waitIfRequested(session, retried, {}, flags);
}

/** Retries the follow-ups that match the filter and may be sent again. Prints a line for each of them, and the counts. */
async function retryMatching(
  session: Session,
  followUps: FollowUpClient,
  filter: FollowUpFilter,
  { dryRun = false, limit }: Pick<RetryFlags, 'dryRun' | 'limit'>,
): Promise<void> {
  session.isJsonLines = true;
  const counts = { found: 0, retried: 0, skipped: 0, failed: 0, dryRun };
  if (!dryRun)
    session.continuation =
      'The follow-ups that were retried continue. To retry the others, run the same command again; no message is sent twice.';
  for await (const result of followUps.retryAll(filter, { dryRun, limit, signal: session.signal })) {
    counts.found += 1;
    const state = stateOf(result);
    if (state !== 'found') counts[state] += 1;
    printResult(session, state, result);
  }
  if (session.isJson) session.print(counts);
  if (counts.failed > 0) session.exitCode = EXIT_CODE.other;
  const { found, retried, skipped, failed } = counts;
  session.printStatus(
    dryRun
      ? `${pluralize(found, 'follow-up')} can be retried. Nothing was sent. To retry, run the command without --dry-run.`
      : `${pluralize(retried, 'follow-up')} retried, ${skipped} skipped because they run again or were already retried, ${failed} failed.`,
  );
}

/**
 * Returns the state of a follow-up after the command. Since the follow-up was listed, another client may have retried it, or an
 * operator may have reset it.
 */
export function stateOf({ runId, error }: Pick<RetryResult, 'runId' | 'error'>) {
  if (error === null) return runId === null ? 'found' : 'retried';
  return hasCode(error, 'STILL_RUNNING') || error.state === 'retried' ? 'skipped' : 'failed';
}

function printResult(session: Session, state: string, { followUp, runId, error }: RetryResult): void {
  const { workflowId, runId: retriedRunId, outcome, verdict, endedAt } = followUp;
  const document = error && commandOutcomeFromError(error).document;
  const columns = [
    state.padEnd('retried'.length),
    endedAt === null ? '-' : endedAt.slice(0, 19) + 'Z',
    (outcome ?? '-').padEnd('FollowUpRejected'.length),
    (verdict ?? '-').padEnd('rejected'.length),
    workflowId,
    error?.message ?? (runId === null ? '' : `run ${runId}`),
  ];
  session.print(
    { workflowId, retriedRunId, outcome, verdict, endedAt, runId, error: document },
    columns.join('  ').trimEnd(),
  );
}
