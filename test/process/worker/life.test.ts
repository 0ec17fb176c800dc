import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { version } from '../../../package.json';
import { FollowUpClient } from '../../../src/client';
import { SEARCH_ATTRIBUTES } from '../../../src/core/names';
import { startDevServer } from '../../../dev/dev-server';
import { freePorts } from '../../../dev/free-ports';
import { type Sandbox, startSandbox } from '../../../sandbox';
import { temporal } from '../../harness/temporal';
import { WorkerProcess } from '../../harness/worker-process';

let sandbox: Sandbox;
let connection: Connection;
const cleanUps: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  sandbox = await startSandbox({ seedJobs: false, turnMs: 500 });
  connection = await Connection.connect({ address: temporal().address });
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});
afterAll(async () => {
  await sandbox.close();
  await connection.close();
});

/** A worker on the shared server, with task queues of its own. */
async function startWorker(
  env: NodeJS.ProcessEnv = {},
): Promise<{ worker: WorkerProcess; followUps: FollowUpClient }> {
  const { address, namespace } = temporal();
  const name = randomUUID().slice(0, 8);
  const worker = await WorkerProcess.start({
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    AGENT_API_BASE_URL: sandbox.baseUrl,
    AGENT_API_KEY: sandbox.apiKey,
    FOLLOW_UP_TASK_QUEUE: `follow-up-${name}`,
    AGENT_API_TASK_QUEUE: `read-${name}`,
    AGENT_API_SEND_TASK_QUEUE: `send-${name}`,
    ...env,
  });
  cleanUps.push(() => worker.stop());
  const client = new Client({ connection, namespace });
  return { worker, followUps: new FollowUpClient(client, { taskQueue: `follow-up-${name}` }) };
}

/** Starts a follow-up whose POST the service holds open, processed, once the worker is ready. */
async function holdAPost(
  worker: WorkerProcess,
  followUps: FollowUpClient,
): Promise<{ projectId: string; jobId: string; workflowId: string }> {
  const job = { projectId: `held-${randomUUID().slice(0, 8)}`, jobId: 'job' };
  sandbox.addJob({ projectId: job.projectId, id: job.jobId });
  sandbox.setFault({ name: 'hold', ...job, operation: 'message', times: 1 });
  await worker.says(/^ready$/);
  const { workflowId } = await followUps.start({
    ...job,
    prompt: 'Fix the broken links.',
    requestId: 'one',
    polling: { initial: '200ms', maximum: '1s' },
    settle: '1s',
    confirm: '1s',
  });
  await sandbox.journal.waitFor({ ...job, operation: 'message', fault: 'hold' });
  return { ...job, workflowId };
}

async function registerNamespace(by: Connection, namespace: string): Promise<void> {
  const workflowExecutionRetentionPeriod = msToTs('1 day');
  await by.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
}

function posts(job: { projectId: string; jobId: string }) {
  return sandbox.journal.entries({ projectId: job.projectId, jobId: job.jobId, operation: 'message' });
}

describe('a worker', () => {
  it('starts before its server, registers the search attributes, and notices when the server is gone', async () => {
    const [port = 0, metricsPort = 0] = await freePorts(2);
    const { worker } = await startWorker({
      TEMPORAL_ADDRESS: `127.0.0.1:${port}`,
      FOLLOW_UP_METRICS_ADDRESS: `localhost:${metricsPort}`,
    });
    await worker.says(/^waiting for Temporal: .*refused/);
    const server = await startDevServer({ cli: temporal().cli, port });
    cleanUps.push(() => server.stop());
    await worker.says(/^ready$/);
    expect(await worker.answersReadyz(200)).toEqual([]);
    for (const name of SEARCH_ATTRIBUTES) {
      expect((await worker.says(/^search attributes registered/)).msg).toContain(name);
    }
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    expect(metrics).toContain('temporal_worker_task_slots_available');
    expect(metrics).toMatch(new RegExp(`^agent_follow_up_worker_info\\{.*version="${version}".*\\} 1$`, 'm'));

    await server.stop();
    expect(await worker.answersReadyz(503)).toEqual([expect.stringContaining(`127.0.0.1:${port}`)]);
    expect((await worker.ask('/healthz')).status).toBe(200);
    worker.signal('SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });

  it('waits for a namespace that is not there yet', async () => {
    const namespace = `later-${randomUUID().slice(0, 8)}`;
    const { worker } = await startWorker({ TEMPORAL_NAMESPACE: namespace });
    await worker.says(/has no namespace.*temporal operator namespace create/);
    await registerNamespace(connection, namespace);
    await worker.says(/^ready$/);
    expect(await worker.answersReadyz(200)).toEqual([]);
  });
});

describe('SIGTERM', () => {
  it('lets a POST in flight finish, so that its outcome is recorded, and the message is sent once', async () => {
    const { worker, followUps } = await startWorker();
    const held = await holdAPost(worker, followUps);
    worker.signal('SIGTERM');
    await worker.says(/^draining; requests in flight: [12];/);
    expect(await worker.answersReadyz(503)).toEqual(['the worker is shutting down']);
    expect((await worker.ask('/healthz')).status).toBe(200);
    sandbox.release();
    expect(await worker.exited).toEqual({ code: 0, signal: null });

    const { events } = await followUps.client.workflow.getHandle(held.workflowId).fetchHistory();
    const completed = (events ?? []).flatMap((event) => event.activityTaskCompletedEventAttributes ?? []);
    const outcome = JSON.parse(String(completed.at(-1)?.result?.payloads?.[0]?.data)) as unknown;
    expect(outcome).toMatchObject({
      kind: 'posted',
      outcome: { verdict: 'accepted', job: { id: held.jobId } },
    });
    expect(posts(held)).toHaveLength(1);

    // The next worker of the same queues brings it to its end.
    const { worker: next } = await startWorker({
      FOLLOW_UP_TASK_QUEUE: followUps.taskQueue,
      AGENT_API_TASK_QUEUE: followUps.taskQueue.replace('follow-up', 'read'),
      AGENT_API_SEND_TASK_QUEUE: followUps.taskQueue.replace('follow-up', 'send'),
    });
    const result = await followUps.getHandle(held.workflowId).result();
    expect(result).toMatchObject({
      followUp: { delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 } },
    });
    expect(posts(held)).toHaveLength(1);
    expect(next.stdout + next.stderr + worker.stdout + worker.stderr).not.toContain(sandbox.apiKey);
  });

  it('again within a second is the same one: npm hands a Ctrl-C on that the terminal has sent already', async () => {
    const { worker, followUps } = await startWorker();
    await holdAPost(worker, followUps);
    worker.signal('SIGINT');
    worker.signal('SIGINT');
    await worker.says(/^draining/);
    worker.signal('SIGINT');
    sandbox.release();
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });

  it('after a second ends the process at once', async () => {
    const { worker, followUps } = await startWorker();
    await holdAPost(worker, followUps);
    const again = setInterval(() => {
      worker.signal('SIGTERM');
    }, 300);
    const exit = await worker.exited.finally(() => {
      clearInterval(again);
      sandbox.release();
    });
    expect(exit).toEqual({ code: 143, signal: null });
    await worker.says(/^SIGTERM again: ending at once/);
  });
});

it('a key that is rotated in its file is used without a restart, and neither key is ever logged', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'worker-key-'));
  cleanUps.push(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'key');
  const first = sandbox.createKey();
  await writeFile(file, `${first}\n`);
  const { worker, followUps } = await startWorker({
    AGENT_API_KEY: '',
    AGENT_API_KEY_FILE: file,
    LOG_LEVEL: 'trace',
  });
  const second = sandbox.createKey();
  await writeFile(file, `${second}\n`);
  const held = await holdAPost(worker, followUps);
  sandbox.release();
  await followUps.getHandle(held.workflowId).result();
  for (const key of [first, second]) expect(worker.stdout + worker.stderr).not.toContain(key);
});
