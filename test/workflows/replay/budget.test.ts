import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { costOf } from '../../../bench/history-cost';
import type { FollowUpResult } from '../../../src/core/result';
import { recordedEvents } from './recorded';

const PAGE = readFileSync(path.join(__dirname, '../../../docs/performance.md'), 'utf8');

/** The numbers of a line of the page's table: polls, events, bytes, workflow tasks, actions. */
function budgetOf(polls: number): number[] {
  const [line = ''] = new RegExp(`^\\| +${polls} \\|.*`, 'm').exec(PAGE) ?? [];
  const cells = line.split('|').slice(1, -1);
  return cells.map((cell) => Number(cell.replace(',', '')));
}

/*
 * Start, settings, send with its timer and result are 17 events, each of the two first reads 11, and the activity that reads on
 * 6, however often it reads in its process. 9.3 KB were recorded; the rest is room for longer ids, links and words.
 */
it.each([
  ['ten-polls', 10],
  ['sixty-polls', 60],
])('the recorded follow-up of %s takes no more than docs/performance.md says of so many', (name, polls) => {
  const recorded = recordedEvents('0.3.0', name);
  const ended = recorded.at(-1)?.workflowExecutionCompletedEventAttributes;
  const result = Buffer.from(ended?.result?.payloads?.[0]?.data ?? []).toString();
  const { events, bytes, workflowTasks, actions } = costOf(recorded);
  const cost = [(JSON.parse(result) as FollowUpResult).followUp.polls, events, bytes, workflowTasks, actions];
  const budget = budgetOf(polls);
  expect(budget).toHaveLength(cost.length);
  for (const [index, each] of cost.entries()) {
    expect(each).toBeGreaterThan(0);
    expect(each).toBeLessThanOrEqual(budget[index] ?? 0);
  }
  expect(cost[0]).toBe(polls);
});

it('the cost of a recorded follow-up of ten polls by timers is counted event by event', () => {
  // A start, twelve timers, eleven activities, the local activity and three changes of phase.
  const cost = { events: 127, bytes: 19_209, workflowTasks: 22, actions: 27 };
  expect(costOf(recordedEvents('0.3.0', 'ten-polls-by-timers'))).toEqual(cost);
});
