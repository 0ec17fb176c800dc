import { readdirSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it } from '@jest/globals';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { bundleCode } from '../../src/worker/bundle';
import { FOLDER, recordedHistory } from '../workflows/replay/recorded';

Runtime.install({ logger: new DefaultLogger('ERROR') });

const histories = readdirSync(FOLDER).flatMap((release) =>
  readdirSync(path.join(FOLDER, release)).map((file) =>
    recordedHistory(release, file.replace(/\.json$/, '')),
  ),
);

let code: string;
beforeAll(async () => {
  const interceptors = require.resolve('@temporalio/interceptors-opentelemetry/lib/workflow-interceptors');
  code = await bundleCode({ workflowInterceptorModules: [interceptors] });
});

it('follow-ups and batches that began without tracing continue on workers with tracing', async () => {
  const replays = Worker.runReplayHistories(
    { workflowBundle: { code } },
    histories.map(({ workflowId, events }) => ({ workflowId, history: { events } })),
  );
  const errors: unknown[] = [];
  for await (const { workflowId, error } of replays) if (error) errors.push([workflowId, error]);
  expect(errors).toEqual([]);
});
