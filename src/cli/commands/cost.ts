import { Command } from 'commander';
import { type BillableActions, type FollowUpCost, NOT_IN_HISTORY, totalOf } from '../../client';
import { columns } from '../table';
import type { Session } from '../session';

const NOT_COUNTED = NOT_IN_HISTORY.map((each) => `  - ${each}`).join('\n');

export function costCommand(session: Session): Command {
  return new Command('cost')
    .summary('what a follow-up has cost: history, workflow tasks, polls, billable actions')
    .description(
      'Prints what a follow-up, running or ended, has cost so far, all its runs together. Billable actions are counted ' +
        'by the rules of Temporal Cloud, and itemized; a server of your own bills nothing.',
    )
    .argument('<workflow-id>', 'as printed by send, or shown in the Web UI')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Billed, and not counted, because no history shows it:
${NOT_COUNTED}
The rules: https://docs.temporal.io/evaluate/cloud/actions

Example:
  $ ${session.command('cost', 'follow-up:docs:job-1:order-4711')}`,
    )
    .action((workflowId: string, flags: { json?: boolean }) =>
      cost(session, workflowId, flags.json === true),
    );
}

async function cost(session: Session, workflowId: string, json: boolean): Promise<void> {
  const followUps = await session.connect();
  const found = await followUps.cost(workflowId);
  const { output } = session;
  if (json) {
    const actions = { total: totalOf(found.actions), ...found.actions };
    output.json({ ...found, actions, notCounted: NOT_IN_HISTORY });
    return;
  }
  output.result(columns(rows(found)));
  if (found.earlierRunsGone) {
    output.note(
      'Earlier runs are gone with the retention of the namespace; what they have cost is not in it.',
    );
  }
  output.note(`Billed, and not counted, because no history shows it:\n${NOT_COUNTED}`);
}

function rows(found: FollowUpCost): [string, string][] {
  const kinds = Object.entries(found.actions) as [keyof BillableActions, number][];
  return [
    ['state', found.state],
    ['runs', count(found.runs)],
    ['history events', count(found.events)],
    ['history bytes', count(found.bytes)],
    ['workflow tasks', count(found.workflowTasks)],
    ['polls', found.polls === null ? 'unknown: no receipt, and no worker answers' : count(found.polls)],
    ['billable actions', count(totalOf(found.actions))],
    ...kinds
      .filter(([, times]) => times > 0)
      .map(([kind, times]): [string, string] => [`  ${KIND_IN_WORDS[kind]}`, count(times)]),
    ['workflow', found.workflowId],
  ];
}

const KIND_IN_WORDS: Readonly<Record<keyof BillableActions, string>> = {
  starts: 'workflow starts',
  schedules: 'schedule',
  resets: 'resets',
  timers: 'timers',
  activities: 'activities',
  activityRetries: 'activity retries',
  localActivities: 'local activities',
  localActivityRetries: 'retries of local activities',
  searchAttributeUpserts: 'search attribute upserts',
  signals: 'signals',
  updates: 'updates',
  optionUpdates: 'changes of options',
};

function count(number: number): string {
  return number.toLocaleString('en-US');
}
