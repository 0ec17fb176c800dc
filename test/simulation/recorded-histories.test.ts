import { beforeAll, describe, expect, it } from '@jest/globals';
import { FOLLOW_UP_WORKFLOW } from '../../src/contract/names';
import { NEWEST_RELEASE, RECORDED, recordedEvents, workflowTypeOf } from '../workflows/replay/recorded';
import { toSimulatedHistory } from './simulated-history';
import { bundleWorkflows } from './simulate';
import type { HistoryEvent } from './temporal/history';
import { NonDeterminism, replayRun } from './worker/cached-run';

/** The simulation has no notifications. */
const FOLLOW_UPS = RECORDED.filter(
  ([release, name]) =>
    workflowTypeOf(recordedEvents(release, name)) === FOLLOW_UP_WORKFLOW && name !== 'notified',
);

/** A replay needs no clock. */
const STILL = { during: <T>(work: () => Promise<T>) => work() };

let workflows: Awaited<ReturnType<typeof bundleWorkflows>>;

beforeAll(async () => {
  workflows = await bundleWorkflows();
});

function replay(release: string, name: string, change = (event: HistoryEvent) => event): Promise<unknown> {
  const { start, events } = toSimulatedHistory(recordedEvents(release, name));
  return replayRun(workflows, { start, events: events.map(change) }, STILL);
}

describe('the simulation', () => {
  it.each(FOLLOW_UPS)(
    'replays the history of a real Temporal server that release %s recorded as %s, with the same commands',
    async (release, name) => {
      await expect(replay(release, name)).resolves.toBeUndefined();
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
    await expect(replay(NEWEST_RELEASE, 'ten-polls-by-timers', change)).rejects.toBeInstanceOf(
      NonDeterminism,
    );
  });
});
