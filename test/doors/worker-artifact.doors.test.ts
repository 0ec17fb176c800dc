import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { DEFAULT_TASK_QUEUES } from '../../src/core/names';
import { FollowUpCaller } from '../harness/following';
import { temporaryFolder } from '../harness/temporary-folder';
import { Ground, mustRun, run } from './ground';

// A first run downloads two versions of Node.
jest.setTimeout(300_000);

/** The oldest version that the project takes, and the newest of each later line. */
const NODES = ['20.19.0', '22.23.3', '24.21.0'];

let ground: Ground;
let connection: Connection;
let caller: FollowUpCaller;

beforeAll(async () => {
  ground = await Ground.open(folder);
  connection = await Connection.connect({ address: ground.server.address });
  const { followUp, agentApi: read, agentApiSend: send } = DEFAULT_TASK_QUEUES;
  caller = new FollowUpCaller(ground.sandbox, new Client({ connection }), { followUp, read, send });
});

afterAll(async () => {
  await connection.close();
  await ground.close();
});

/** Removed when nothing runs in it any more. */
const folder = temporaryFolder();

/** The program of a Node version, from the registry. */
async function node(version: string): Promise<string> {
  const cwd = path.join(folder, version);
  await mkdir(cwd, { recursive: true });
  const install = ['install', '--no-audit', '--no-fund', '--prefix', cwd];
  await mustRun('npm', [...install, `node-${process.platform}-${process.arch}@${version}`], { cwd });
  return path.join(cwd, `node_modules/node-${process.platform}-${process.arch}/bin/node`);
}

describe('the worker artefact', () => {
  it.each(NODES)(
    'works under Node %s, as a user who may write nowhere in it, and ends on SIGTERM',
    async (version) => {
      const worker = await ground.startWorker(await node(version));
      expect(await worker.answersReadyz(200)).toEqual([]);
      const following = await caller.follow();
      const { status, prLink } = await following.result();
      expect({ status, prLink }).toEqual({ status: 'completed', prLink: expect.stringContaining('/pull/') });
      worker.signal('SIGTERM');
      expect(await worker.exited).toEqual({ code: 0, signal: null });
    },
  );

  it('has the starter, and nothing that production does not run', async () => {
    const starter = await run('node', [ground.worker('dist/starter.js'), '--version'], { cwd: folder });
    expect(starter).toMatchObject({ code: 0 });
    const found = (pattern: string) =>
      mustRun('find', [ground.worker('.'), '-path', pattern, '-print'], { cwd: folder });
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
