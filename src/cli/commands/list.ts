import { type Command, Option } from 'commander';
import type { FollowUpDescription } from '../../entries/client';
import { PHASES } from '../../contract/result';
import { addFilterFlags, type FilterFlags, filterFromFlags } from '../flags/filter-flags';
import { wholeNumberParser } from '../flags/request-flags';
import { table } from '../render/text';
import type { Session } from '../session';

/** The maximum of `--limit`. Temporal's own tools list more workflows. */
const MAX_LIMIT = 10_000;

export function addListCommand(program: Command, session: Session): void {
  const command = program
    .command('list')
    .description(
      'Lists the follow-ups of the namespace, each with its latest run. Running follow-ups come first, then the others, with the ' +
        'latest end first. The list is eventually consistent: a recent start or change may be missing for some seconds.',
    )
    .addOption(new Option('--phase <phase>', 'only follow-ups in this phase').choices(PHASES));
  addFilterFlags(command)
    .option(
      '--can-retry',
      'only follow-ups that have ended with the verdict not-sent or rejected, which retry requires',
    )
    .option(
      '--limit <number>',
      `maximum number of follow-ups, 1 to ${MAX_LIMIT}`,
      wholeNumberParser(1, MAX_LIMIT),
      50,
    )
    .option('--json', 'print one JSON array')
    .action(async ({ limit, ...flags }: FilterFlags & { readonly limit: number }) => {
      const { signal } = session;
      const filter = filterFromFlags(flags);
      const followUps = await session.connect();
      const found: FollowUpDescription[] = [];
      for await (const each of followUps.list(filter, { signal })) {
        found.push(each);
        if (found.length === limit) break;
      }
      // A visibility list does not have these fields.
      const unknown = { receipt: undefined, workflowTaskFailure: undefined, startsAt: undefined };
      const headings = 'STARTED,PHASE,OUTCOME,DELIVERY,EVIDENCE,STATUS,PROJECT,JOB,WORKFLOW ID'.split(',');
      session.print(
        found.map((each) => ({ ...each, ...unknown })),
        table(headings, found.map(row)),
      );
      session.printStatus(
        `${found.length} found${found.length === limit ? moreText(limit) : ''}; eventually consistent`,
      );
    });
}

function moreText(limit: number): string {
  return limit < MAX_LIMIT ? ' (to list more, increase --limit)' : ' (to list others, narrow the filter)';
}

function row({ state, ...followUp }: FollowUpDescription): string[] {
  const { startedAt, phase, outcome, verdict, evidence, jobStatus, projectId, jobId, workflowId } = followUp;
  // The state replaces the phase, because a terminated workflow could not update its phase.
  const phaseOrState = state === 'terminated' || state === 'timed-out' ? state : (phase ?? state);
  const rest = [outcome, verdict, evidence, jobStatus, projectId, jobId].map((text) => text ?? '-');
  return [startedAt.slice(0, 19) + 'Z', phaseOrState, ...rest, workflowId];
}
