import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { DeterminismViolationError } from '@temporalio/workflow';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { temporal } from '../../harness/temporal';

const folder = path.join(__dirname, 'histories');
const histories = readdirSync(folder).flatMap((release) =>
  readdirSync(path.join(folder, release)).map((file) => [release, file.replace(/\.json$/, '')] as const),
);

interface HistoryEvent {
  eventType: string;
  activityTaskScheduledEventAttributes?: { activityType: { name: string } };
  workflowExecutionStartedEventAttributes?: { originalExecutionRunId: string };
  workflowTaskStartedEventAttributes?: object;
}

interface Recorded {
  workflowId: string;
  events: HistoryEvent[];
}

function read(release: string, name: string): Recorded {
  return JSON.parse(readFileSync(path.join(folder, release, `${name}.json`), 'utf8')) as Recorded;
}

/**
 * The history up to its last workflow task, in a run of another id, as a reset to there makes it. The replay takes the run's
 * id from the first event.
 */
function reset({ workflowId, events }: Recorded): Recorded {
  const lastTask = events.findLastIndex((event) => event.workflowTaskStartedEventAttributes);
  const [started] = events;
  if (started?.workflowExecutionStartedEventAttributes)
    started.workflowExecutionStartedEventAttributes.originalExecutionRunId = randomUUID();
  return { workflowId, events: events.slice(0, lastTask + 1) };
}

async function replay({ workflowId, ...history }: Recorded): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle: { codePath: temporal().bundlePath } }, history, workflowId);
}

Runtime.install({ logger: new DefaultLogger('ERROR') });

describe('the workflow', () => {
  it.each(histories)('replays what release %s recorded of %s', async (release, name) => {
    await expect(replay(read(release, name))).resolves.toBeUndefined();
  });

  it.each(histories)(
    'replays in a run made by a reset what release %s recorded of %s',
    async (release, name) => {
      await expect(replay(reset(read(release, name)))).resolves.toBeUndefined();
    },
  );

  it('would not replay a history of another order, so that this check can fail', async () => {
    const [release] = histories[0] ?? [];
    const history = read(release ?? '', 'accepted');
    const send = history.events.find((event) => event.activityTaskScheduledEventAttributes);
    if (send?.activityTaskScheduledEventAttributes) {
      send.activityTaskScheduledEventAttributes.activityType.name = 'getJob';
    }
    await expect(replay(history)).rejects.toBeInstanceOf(DeterminismViolationError);
  });
});
