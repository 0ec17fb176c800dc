import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { costOf, type HistoryEvent, totalOf } from '../../src/client/history-cost';
import { REQUEST_OPTIONS } from '../../src/contract/request-options';
import type { FollowUpResult } from '../../src/contract/result';
import { recordedEvents } from './recorded';

/** What one read takes: a durable timer and an activity, each followed by a workflow task. */
const READ = { events: 11, workflowTasks: 2, actions: 2 } as const;

/**
 * What a follow-up takes beside the reads of its watch: start, settings, baseline, send, result; 24 events as recorded
 * by 0.1.0. Of its actions, one is the start, one the settings, two are activities, one is the timer beside the send,
 * and four show a change of phase.
 */
const FRAME = { events: 24, workflowTasks: 3, actions: 9 } as const;

/** The first polls have a read each; whatever follows is polled by the retries of one more read. */
const READS = REQUEST_OPTIONS['polling.timerPolls'].default + 1;

/** The second gear's patch: a marker, and the search attribute by which runs with it are found. */
const PATCH = { events: 2, actions: 1 } as const;

/** The same for 10 polls and for 60: a retry leaves no event and makes no workflow task. */
const MAX_EVENTS = FRAME.events + READS * READ.events + PATCH.events;
const MAX_WORKFLOW_TASKS = FRAME.workflowTasks + READS * READ.workflowTasks;

/**
 * By the server's own count. 4.6 KB are the frame, 1.6 KB each read, and 1.2 KB more what the last read is told and has
 * counted and the patch: 17.2 KB when it was recorded. The rest is room for longer ids, links and words of the service; 0.1.0 took
 * 19.7 KB for ten polls.
 */
const MAX_BYTES = 18_000;

/**
 * A retry is one action in history, where a poll by a timer of its own is two. (Its heartbeat, which keeps the count, is
 * billed too, and is in no history: docs/performance.md.)
 */
const maxActions = (polls: number): number =>
  FRAME.actions + READS * READ.actions + (polls - READS) + PATCH.actions;

describe.each([
  ['ten-polls', 10],
  ['sixty-polls', 60],
])('the recorded follow-up of %s', (name, polls) => {
  const events = recordedEvents('0.2.0', name);
  const cost = costOf(events);

  it('has made that many polls', () => {
    expect(resultOf(events).followUp.polls).toBe(polls);
  });

  it(`takes at most ${MAX_EVENTS} events of history`, () => {
    expect(cost.events).toBeLessThanOrEqual(MAX_EVENTS);
  });

  it(`takes at most ${MAX_BYTES} bytes of history`, () => {
    expect(cost.bytes).toBeGreaterThan(0);
    expect(cost.bytes).toBeLessThanOrEqual(MAX_BYTES);
  });

  it(`takes at most ${MAX_WORKFLOW_TASKS} workflow tasks`, () => {
    expect(cost.workflowTasks).toBeLessThanOrEqual(MAX_WORKFLOW_TASKS);
  });

  it(`takes at most ${maxActions(polls)} billable actions`, () => {
    expect(totalOf(cost.actions)).toBeLessThanOrEqual(maxActions(polls));
  });
});

it('the budget stands in docs/performance.md', () => {
  const page = readFileSync(path.join(__dirname, '../../docs/performance.md'), 'utf8');
  const rows = page.split('\n').map((line) => line.split('|').map((cell) => cell.replace(',', '').trim()));

  for (const polls of [10, 60]) {
    const budget = [polls, MAX_EVENTS, MAX_BYTES, MAX_WORKFLOW_TASKS, maxActions(polls)];
    expect(rows).toContainEqual(['', ...budget.map(String), '']);
  }
});

function resultOf(events: readonly HistoryEvent[]): FollowUpResult {
  const ended = events.at(-1)?.workflowExecutionCompletedEventAttributes;
  return JSON.parse(Buffer.from(ended?.result?.payloads?.[0]?.data ?? []).toString()) as FollowUpResult;
}
