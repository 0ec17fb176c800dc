import { readdirSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { recordedEvents } from '../workflows/replay/recorded';
import { toSimulatedHistory } from './simulated-history';
import { bundleWorkflows } from './simulate';
import type { HistoryEvent } from './temporal/history';
import { NonDeterminism, replayRun } from './worker/cached-run';

const RELEASE = '0.3.0';
const NAMES = readdirSync(path.join(__dirname, '../workflows/replay/histories', RELEASE))
  .map((file) => file.replace(/\.json$/, ''))
  .filter((name) => !name.startsWith('batch-'));

/** A replay needs no clock. */
const STILL = { during: <T>(work: () => Promise<T>) => work() };

let workflows: Awaited<ReturnType<typeof bundleWorkflows>>;

beforeAll(async () => {
  workflows = await bundleWorkflows();
});

function replay(name: string, change = (event: HistoryEvent) => event): Promise<unknown> {
  const { start, events } = toSimulatedHistory(recordedEvents(RELEASE, name));
  return replayRun(workflows, { start, events: events.map(change) }, STILL);
}

describe('the simulation', () => {
  it.each(NAMES)(
    'replays the recorded history %s of a real Temporal server with the same commands',
    async (name) => {
      await expect(replay(name)).resolves.toBeUndefined();
    },
  );

  it.each<[string, (event: HistoryEvent) => HistoryEvent]>([
    [
      'activity',
      (event) =>
        event.type === 'ActivityTaskScheduled'
          ? { ...event, activity: { ...event.activity, activityType: 'another' } }
          : event,
    ],
    ['timer', (event) => (event.type === 'TimerStarted' ? { ...event, ms: event.ms + 1 } : event)],
    [
      'end',
      (event) =>
        event.type === 'WorkflowExecutionCompleted' ? { ...event, type: 'WorkflowExecutionCanceled' } : event,
    ],
    [
      'phase',
      (event) => (event.type === 'UpsertWorkflowSearchAttributes' ? { ...event, fields: {} } : event),
    ],
  ])('reports non-determinism if a recorded history has another %s', async (_, change) => {
    await expect(replay('ten-polls-by-timers', change)).rejects.toBeInstanceOf(NonDeterminism);
  });
});
