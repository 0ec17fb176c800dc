import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { DeterminismViolationError } from '@temporalio/workflow';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { temporal } from '../harness/temporal';

const folder = path.join(__dirname, 'histories');
const histories = readdirSync(folder).flatMap((release) =>
  readdirSync(path.join(folder, release)).map((file) => [release, file.replace(/\.json$/, '')] as const),
);

interface HistoryEvent {
  eventType: string;
  activityTaskScheduledEventAttributes?: { activityType: { name: string } };
  markerRecordedEventAttributes?: { details: { result?: { payloads: { data: string }[] } } };
}

interface Recorded {
  workflowId: string;
  events: HistoryEvent[];
}

function read(release: string, name: string): Recorded {
  return JSON.parse(readFileSync(path.join(folder, release, `${name}.json`), 'utf8')) as Recorded;
}

async function replay({ workflowId, ...history }: Recorded): Promise<void> {
  await Worker.runReplayHistory({ workflowBundle: { codePath: temporal().bundlePath } }, history, workflowId);
}

Runtime.install({ logger: new DefaultLogger('ERROR') });

describe('the workflow', () => {
  it.each(histories)('replays what release %s recorded of %s', async (release, name) => {
    await expect(replay(read(release, name))).resolves.toBeUndefined();
  });

  it('replays a run that 0.2.0 has begun, and whose later polls a worker of 0.1.0 has made by timers', async () => {
    const history = read('0.1.0', 'accepted-of-ten-polls');
    const settings = history.events.flatMap(
      ({ markerRecordedEventAttributes: marker }) => marker?.details.result?.payloads ?? [],
    );
    expect(settings).toHaveLength(1);
    for (const payload of settings) {
      const known = JSON.parse(Buffer.from(payload.data, 'base64').toString()) as object;
      payload.data = Buffer.from(JSON.stringify({ ...known, patienceMs: 1_800_000 })).toString('base64');
    }
    await expect(replay(history)).resolves.toBeUndefined();
  });

  it('would not replay a history of another order, so that this check can fail', async () => {
    const history = read('0.1.0', 'accepted');
    const read1 = history.events.find((event) => event.activityTaskScheduledEventAttributes);
    if (read1?.activityTaskScheduledEventAttributes) {
      read1.activityTaskScheduledEventAttributes.activityType.name = 'sendMessage';
    }
    await expect(replay(history)).rejects.toBeInstanceOf(DeterminismViolationError);
  });
});
