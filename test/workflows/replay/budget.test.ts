import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { computeCost } from '../../../tools/lib/history-cost';
import type { FollowUpResult } from '../../../src/contract/result';
import { NEWEST_RELEASE, recordedEvents } from './recorded';

const PAGE = readFileSync(path.join(__dirname, '../../../docs/performance.md'), 'utf8');

/** Returns the numbers of a row in the page's table: polls, events, bytes, workflow tasks, actions. */
function budgetOf(polls: number): number[] {
  const [line = ''] = new RegExp(`^\\| +${polls} \\|.*`, 'm').exec(PAGE) ?? [];
  const cells = line.split('|').slice(1, -1);
  return cells.map((cell) => Number(cell.replace(',', '')));
}

/*
 * The start, the settings and the send with its timer are 15 events. Each of the two polls with timers has 11 events, and pollJob has
 * 6, for any number of polls. The release of the job lock and the end are 3 events.
 */
it.each([
  ['ten-polls', 10],
  ['sixty-polls', 60],
])(
  'the recorded follow-up %s does not exceed the cost that docs/performance.md states for %i polls',
  (name, polls) => {
    const recorded = recordedEvents(NEWEST_RELEASE, name);
    const ended = recorded.at(-1)?.workflowExecutionCompletedEventAttributes;
    const result = Buffer.from(ended?.result?.payloads?.[0]?.data ?? []).toString();
    const { events, bytes, workflowTasks, actions } = computeCost(recorded);
    const cost = [
      (JSON.parse(result) as FollowUpResult).receipt.polls,
      events,
      bytes,
      workflowTasks,
      actions,
    ];
    const budget = budgetOf(polls);
    expect(budget).toHaveLength(cost.length);
    for (const [index, each] of cost.entries()) {
      expect(each).toBeGreaterThan(0);
      expect(each).toBeLessThanOrEqual(budget[index] ?? 0);
    }
    expect(cost[0]).toBe(polls);
  },
);

it('events, workflow tasks and actions of a recorded follow-up with ten polls by timers are counted correctly', () => {
  // The actions are the start, 11 timers, 11 activities, 3 changes of search attributes, and 2 tasks with a local activity.
  const cost = { events: 128, workflowTasks: 22, actions: 28 };
  expect(computeCost(recordedEvents(NEWEST_RELEASE, 'ten-polls-by-timers'))).toMatchObject(cost);
});
