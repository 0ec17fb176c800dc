import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { DeterminismViolationError } from '@temporalio/workflow';
import { DefaultLogger, type ReplayResult, Runtime, Worker } from '@temporalio/worker';
import { temporal } from '../../harness/temporal';
import { FOLDER, recordedHistory } from './recorded';

Runtime.install({ logger: new DefaultLogger('ERROR') });

type Recorded = ReturnType<typeof recordedHistory>;

const histories = readdirSync(FOLDER).flatMap((release) =>
  readdirSync(path.join(FOLDER, release)).map((file) => [release, file.replace(/\.json$/, '')] as const),
);

/** Returns the history up to its last workflow task with another run ID, as in a run that a reset to this task made. */
function reset({ workflowId, events }: Recorded): Recorded {
  const lastTask = events.findLastIndex((event) => event.workflowTaskStartedEventAttributes);
  const started = events[0]?.workflowExecutionStartedEventAttributes;
  if (started) started.originalExecutionRunId = randomUUID();
  return { workflowId, events: events.slice(0, lastTask + 1) };
}

let current: { workflowId: string; history: unknown };

function* currentHistories() {
  for (;;) yield current;
}

/** A single worker replays all histories. Each requested result makes this worker replay the current history. */
const results = Worker.runReplayHistories(
  { workflowBundle: { codePath: temporal().bundlePath } },
  currentHistories(),
);
afterAll(() => results.return?.());

async function replay({ workflowId, events }: Recorded): Promise<void> {
  current = { workflowId, history: { events } };
  const { value } = (await results.next()) as IteratorResult<ReplayResult, undefined>;
  if (value === undefined) throw new Error('the replay worker has ended');
  if (value.error) throw value.error;
}

// Proves D1.
it.each(histories)(
  'release %s, %s: the recorded history replays, also in a run that a reset made',
  async (release, name) => {
    const recorded = recordedHistory(release, name);
    await expect(replay(recorded)).resolves.toBeUndefined();
    await expect(replay(reset(recorded))).resolves.toBeUndefined();
  },
);

it('a history with another activity does not replay, so that this check can fail', async () => {
  const history = recordedHistory(histories[0]?.[0] ?? '', 'accepted');
  const send = history.events.find((event) => event.activityTaskScheduledEventAttributes);
  const { activityType } = send?.activityTaskScheduledEventAttributes ?? {};
  if (activityType) activityType.name = 'getJob';
  await expect(replay(history)).rejects.toBeInstanceOf(DeterminismViolationError);
});
