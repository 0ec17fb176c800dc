import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { FollowUpCaller } from '../harness/following';
import type { WorkerProcess } from '../harness/worker-process';
import { Ground, mustRun, run, temporaryFolder } from './ground';

// A first run downloads two versions of Node.
jest.setTimeout(300_000);

/** The oldest version that the project takes, and the newest of each later line. */
const NODES = ['20.19.0', '22.23.3', '24.21.0'];

let ground: Ground;
let place: Awaited<ReturnType<typeof temporaryFolder>>;
let connection: Connection;
let caller: FollowUpCaller;

beforeAll(async () => {
  [ground, place] = await Promise.all([Ground.open(), temporaryFolder()]);
  connection = await Connection.connect({ address: ground.server.address });
  caller = new FollowUpCaller(ground.sandbox, new Client({ connection }), 'follow-up');
});

afterAll(async () => {
  await connection.close();
  await ground.close();
  await place.remove();
});

/** The program of a Node version, from the registry. */
async function node(version: string): Promise<string> {
  const cwd = path.join(place.folder, version);
  await mkdir(cwd, { recursive: true });
  const install = ['install', '--no-audit', '--no-fund', '--prefix', cwd];
  await mustRun('npm', [...install, `node-${process.platform}-${process.arch}@${version}`], { cwd });
  return path.join(cwd, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
}

/** Lets a worker do a whole follow-up. */
async function works(worker: WorkerProcess): Promise<void> {
  expect(await worker.answersReadyz(200)).toEqual([]);
  const following = await caller.follow({ turn: { durationMs: 1_000 } });
  const { status, prLink } = await following.result();
  expect({ status, prLink }).toEqual({ status: 'completed', prLink: expect.stringContaining('/pull/') });
}

describe('the worker artefact', () => {
  it.each(NODES)(
    'works under Node %s, as a user who may write nowhere in it, and ends on SIGTERM',
    async (version) => {
      const worker = await ground.startWorker(await node(version));
      await works(worker);
      worker.signal('SIGTERM');
      expect(await worker.exited).toEqual({ code: 0, signal: null });
    },
  );

  it('finishes the POST under way on SIGTERM, and sends it once', async () => {
    const worker = await ground.startWorker();
    const { projectId, jobId } = ground.sandbox.addJob({ projectId: 'docs' });
    ground.sandbox.setFault({ name: 'hold', projectId, jobId, operation: 'message', times: 1 });
    const following = await caller.send({ projectId, jobId });
    await ground.sandbox.journal.waitFor(
      { projectId, jobId, operation: 'message', fault: 'hold' },
      { timeoutMs: 20_000 },
    );
    worker.signal('SIGTERM');
    await worker.says(/^draining; requests in flight: 1/);
    ground.sandbox.release({ projectId, jobId });
    expect(await worker.exited).toEqual({ code: 0, signal: null });

    await ground.startWorker();
    const { followUp } = await following.result();
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 1 });
    expect(following.posts()).toHaveLength(1);
  });

  it('has the starter, and nothing that production does not run', async () => {
    const starter = await run('node', [ground.worker('dist/starter.js'), '--version'], { cwd: place.folder });
    expect(starter).toMatchObject({ code: 0 });
    const found = (pattern: string) =>
      mustRun('find', [ground.worker('.'), '-path', pattern, '-print'], { cwd: place.folder });
    for (const pattern of [
      '*/node_modules/jest',
      '*/node_modules/typescript',
      '*.d.ts',
      '*.map',
      '*/@swc/core-*',
      '*windows*',
      '*darwin*',
    ]) {
      expect({ pattern, found: await found(pattern) }).toEqual({ pattern, found: '' });
    }
  });
});
