import { randomUUID } from 'node:crypto';
import { afterAll, expect, it } from '@jest/globals';
import { DeterminismViolationError } from '@temporalio/workflow';
import {
  DefaultLogger,
  type ReplayResult,
  type ReplayWorkerOptions,
  Runtime,
  Worker,
} from '@temporalio/worker';
import { temporal } from '../../harness/temporal';
import { CALLERS, NEWEST_RELEASE, RECORDED, recordedHistory } from './recorded';

Runtime.install({ logger: new DefaultLogger('ERROR') });

type Recorded = ReturnType<typeof recordedHistory>;

/** Returns the history up to its last workflow task with another run ID, as in a run that a reset to this task made. */
function reset({ workflowId, events }: Recorded): Recorded {
  const lastTask = events.findLastIndex((event) => event.workflowTaskStartedEventAttributes);
  const started = events[0]?.workflowExecutionStartedEventAttributes;
  if (started) started.originalExecutionRunId = randomUUID();
  return { workflowId, events: events.slice(0, lastTask + 1) };
}

/** A worker that replays histories. Each requested result makes this worker replay the next history. */
class Replayer {
  private current: { workflowId: string; history: unknown } = { workflowId: '', history: {} };
  private readonly results: ReturnType<typeof Worker.runReplayHistories>;

  constructor(code: ReplayWorkerOptions) {
    this.results = Worker.runReplayHistories(code, this.histories());
    afterAll(() => this.results.return?.());
  }

  async replay({ workflowId, events }: Recorded): Promise<void> {
    this.current = { workflowId, history: { events } };
    const { value } = (await this.results.next()) as IteratorResult<ReplayResult, undefined>;
    if (value === undefined) throw new Error('the replay worker has ended');
    if (value.error) throw value.error;
  }

  private *histories() {
    for (;;) yield this.current;
  }
}

const followUps = new Replayer({ workflowBundle: { codePath: temporal().bundlePath } });
const parents = new Replayer({ workflowsPath: CALLERS });

// Proves D1.
it.each(RECORDED)(
  'release %s, %s: the recorded history replays, also in a run that a reset made',
  async (release, name) => {
    const recorded = recordedHistory(release, name);
    const replayer = name.startsWith('parent-') ? parents : followUps;
    // In this replay, the new run ID also changes the seed of the notification's ID. A reset by the Temporal server keeps the seed.
    const histories = name.includes('notified') ? [recorded] : [recorded, reset(recorded)];
    for (const history of histories) await expect(replayer.replay(history)).resolves.toBeUndefined();
  },
);

it('a history with another activity does not replay, so that this check can fail', async () => {
  const history = recordedHistory(NEWEST_RELEASE, 'accepted');
  const send = history.events.find((event) => event.activityTaskScheduledEventAttributes);
  const { activityType } = send?.activityTaskScheduledEventAttributes ?? {};
  if (activityType) activityType.name = 'getJob';
  await expect(followUps.replay(history)).rejects.toBeInstanceOf(DeterminismViolationError);
});
