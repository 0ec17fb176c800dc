import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { costOf } from '../../../bench/history-cost';
import { REQUEST_OPTIONS } from '../../../src/core/request';
import type { FollowUpResult } from '../../../src/core/result';
import { recordedEvents } from './recorded';

/** What one of the first reads takes: a durable timer and an activity, each followed by a workflow task. */
const READ = { events: 11, workflowTasks: 2, actions: 2 } as const;
const READS = REQUEST_OPTIONS['polling.timerPolls'].default;

/**
 * What a follow-up takes beside the reads of its watch: start, settings, send with its timer, result. Of its actions, one is
 * the start, one the settings, two the send, and three show a change of phase; a start by `FollowUpClient` sets the first of
 * these itself, and saves its event and its action.
 */
const FRAME = { events: 17, workflowTasks: 2, actions: 7 } as const;

/** The activity that reads on, three events, and the workflow task at its end. */
const POLL_JOB = { events: 6, workflowTasks: 1, actions: 1 } as const;

/** The same for 10 polls and for 60: a read in process leaves no event, makes no workflow task, and is no action. */
const MAX_EVENTS = FRAME.events + READS * READ.events + POLL_JOB.events;
const MAX_WORKFLOW_TASKS = FRAME.workflowTasks + READS * READ.workflowTasks + POLL_JOB.workflowTasks;

/** The heartbeats are billed too, and are in no history: docs/performance.md. */
const MAX_ACTIONS = FRAME.actions + READS * READ.actions + POLL_JOB.actions;

/**
 * By the server's own count. 3.7 KB are the frame up to the first read, 1.6 KB each read, and 1.5 KB what the last activity
 * is told and has counted: 9.3 KB when it was recorded. The rest is room for longer ids, links and words of the service.
 */
const MAX_BYTES = 10_500;

it.each([
  ['ten-polls', 10],
  ['sixty-polls', 60],
])(
  'the recorded follow-up of %s has made that many polls, and takes no more than the budget',
  (name, polls) => {
    const recorded = recordedEvents('0.3.0', name);
    const { events, bytes, workflowTasks, actions } = costOf(recorded);
    const ended = recorded.at(-1)?.workflowExecutionCompletedEventAttributes;
    const result = Buffer.from(ended?.result?.payloads?.[0]?.data ?? []).toString();
    expect((JSON.parse(result) as FollowUpResult).followUp.polls).toBe(polls);
    expect(events).toBeLessThanOrEqual(MAX_EVENTS);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
    expect(workflowTasks).toBeLessThanOrEqual(MAX_WORKFLOW_TASKS);
    expect(actions).toBeLessThanOrEqual(MAX_ACTIONS);
  },
);

it('the cost of a recorded follow-up of ten polls by timers is counted event by event', () => {
  // A start, twelve timers, eleven activities, the local activity and three changes of phase.
  const cost = { events: 127, bytes: 19_209, workflowTasks: 22, actions: 27 };
  expect(costOf(recordedEvents('0.3.0', 'ten-polls-by-timers'))).toEqual(cost);
});

it('the budget stands in docs/performance.md', () => {
  const page = readFileSync(path.join(__dirname, '../../../docs/performance.md'), 'utf8');
  const rows = page.split('\n').map((line) => line.split('|').map((cell) => cell.replace(',', '').trim()));

  for (const polls of [10, 60]) {
    const budget = [polls, MAX_EVENTS, MAX_BYTES, MAX_WORKFLOW_TASKS, MAX_ACTIONS];
    expect(rows).toContainEqual(['', ...budget.map(String), '']);
  }
});
