import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { NativeConnection, Worker } from '@temporalio/worker';
import { NOTIFICATION_WORKFLOW } from '../../../src/contract/names';
import { startDevServer } from '../../../tools/lib/dev-server';
import { eventually } from '../../../tools/lib/eventually';
import { Environment, type EnvironmentOptions } from '../../harness/environment';
import { TestBatch } from '../../harness/test-batch';
import { batchPaths, type BatchPaths, continuingBatchPaths } from './batch-paths';
import { continuing, paths, type Paths } from './follow-up-paths';
import { interventionPaths } from './intervention-paths';
import { CALLERS } from './recorded';

const ROOT = path.resolve(__dirname, '../../..');

interface Recording {
  /** The folder for the histories. */
  readonly folder: string;
  /** The file of the workflow bundle. */
  readonly bundlePath: string;
  /** The executable of the Temporal CLI. */
  readonly cli: string;
}

/** The Temporal server of one part of the recording. */
interface Server extends Pick<EnvironmentOptions, 'notify'> {
  /** The number of events at which the Temporal server suggests continue-as-new. @default the server's default, 4,096 */
  readonly continueAsNewAt?: number;
}

/** Records the history of every path, in a file with the name of the path. */
export async function recordHistories(recording: Recording): Promise<void> {
  await withEnvironment(recording, {}, async (environment, address) => {
    await recordFollowUps(recording, environment, { ...paths, ...interventionPaths });
    await recordBatches(recording, environment, batchPaths);
    await recordParents(recording, environment, address);
    const chunk = { taskQueue: environment.taskQueue, workflowId: 'chunk', args: [] };
    await environment.client.workflow.execute('followUpBatchItems', chunk);
    await saveRuns(recording, environment, 'chunk', 'batch-items');
  });
  await withEnvironment(recording, { continueAsNewAt: 45 }, async (environment) => {
    await recordFollowUps(recording, environment, continuing);
  });
  await withEnvironment(recording, { continueAsNewAt: 12 }, async (environment) => {
    await recordBatches(recording, environment, continuingBatchPaths);
  });
  await recordNotifications(recording);
}

async function recordFollowUps(
  recording: Recording,
  environment: Environment,
  followed: Paths,
): Promise<void> {
  for (const [name, follow] of Object.entries(followed)) {
    const { workflowId } = (await follow(environment)).handle;
    // Some paths end with a failure.
    await environment.client.workflow
      .getHandle(workflowId)
      .result()
      .catch(() => undefined);
    await saveRuns(recording, environment, workflowId, name);
  }
}

async function recordBatches(recording: Recording, environment: Environment, run: BatchPaths): Promise<void> {
  for (const [name, runBatch] of Object.entries(run))
    await saveRuns(recording, environment, (await runBatch(environment)).workflow.workflowId, name);
}

/** Records workflows of another team that start a follow-up as a child, on a worker without the plugin. */
async function recordParents(recording: Recording, environment: Environment, address: string): Promise<void> {
  const taskQueue = `callers-${randomUUID()}`;
  const connection = await NativeConnection.connect({ address });
  const worker = await Worker.create({ connection, taskQueue, workflowsPath: CALLERS });
  await worker.runUntil(async () => {
    for (const type of ['waits', 'startsTwice', 'startsAndReturns']) {
      const args = [environment.newRequest(), { taskQueue: environment.taskQueue }];
      await environment.client.workflow.execute(type, { taskQueue, workflowId: type, args });
      await saveRuns(recording, environment, type, `parent-${type}`);
    }
  });
  await connection.close();
}

/** Records a follow-up and a batch that send notifications, and the workflows that send them. */
async function recordNotifications(recording: Recording): Promise<void> {
  const receiver = createServer((_, response) => response.writeHead(204).end());
  await once(receiver.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;
  const notify = { url, secrets: { current: () => Promise.resolve(secret) } };
  try {
    await withEnvironment(recording, { notify }, async (environment) => {
      await recordFollowUps(recording, environment, { notified: (each) => each.follow() });
      const notified = async () => {
        const batch = new TestBatch(environment).addItems(1);
        await batch.start();
        await batch.handle.result();
        return batch;
      };
      await recordBatches(recording, environment, { 'batch-notified': notified });
      const query = `WorkflowType = "${NOTIFICATION_WORKFLOW}" AND ExecutionStatus = "Completed"`;
      const sent = await eventually('a notification was sent', async () => {
        for await (const each of environment.client.workflow.list({ query })) return each;
        return undefined;
      });
      await saveRuns(recording, environment, sent.workflowId, 'notification');
    });
  } finally {
    receiver.close().closeAllConnections();
  }
}

async function withEnvironment(
  { bundlePath, cli }: Recording,
  { continueAsNewAt, notify }: Server,
  work: (environment: Environment, address: string) => Promise<void>,
): Promise<void> {
  const dynamicConfig = {
    // Without this setting, every timer and retry could fire up to a second late.
    'history.timerProcessorMaxTimeShift': '10ms',
    ...(continueAsNewAt !== undefined && { 'limit.historyCount.suggestContinueAsNew': continueAsNewAt }),
  };
  const server = await startDevServer({ cli, searchAttributes: true, dynamicConfig });
  try {
    const options = { address: server.address, bundlePath, ...(notify && { notify }) };
    const environment = await Environment.open(options);
    await work(environment, server.address).finally(() => environment.close());
  } finally {
    await server.stop();
  }
}

/** Saves the first and the last run of a workflow. Both are the same run unless the workflow was reset, retried or continued as new. */
async function saveRuns(
  { folder }: Recording,
  { client }: Environment,
  workflowId: string,
  name: string,
): Promise<void> {
  const { runId: lastRunId } = await client.workflow.getHandle(workflowId).describe();
  const runs = await eventually(
    `the list has the last run of ${workflowId}`,
    async () => {
      const found = [];
      for await (const run of client.workflow.list({ query: `WorkflowId = "${workflowId}"` }))
        found.push(run);
      return found.sort((a, b) => Number(a.startTime) - Number(b.startTime)).map(({ runId }) => runId);
    },
    { until: (runIds) => runIds.includes(lastRunId) },
  );
  for (const [index, runId] of [...new Set([runs[0] ?? lastRunId, lastRunId])].entries()) {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    const recorded = JSON.parse(historyToJSON(history)) as object;
    const text = JSON.stringify({ workflowId, ...recorded });
    const file = `${name}${index === 0 ? '' : `-run-${index + 1}`}.json`;
    // The stack trace of a failure has file paths. The recorded history does not need the folder of this machine.
    await writeFile(path.join(folder, file), `${text.replaceAll(`${ROOT}${path.sep}`, '')}\n`);
    console.log(`${file}: ${history.events?.length ?? 0} events`);
  }
}
