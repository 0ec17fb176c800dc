import path from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { DEFAULT_TASK_QUEUES } from '../../src/core/names';
import { FollowUpCaller } from '../harness/following';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { Ground, NPM_INSTALL } from './ground';

// A first run downloads the versions of Node.
jest.setTimeout(300_000);

/** The oldest version that the project takes, and the newest of each later line. */
const NODES = ['20.19.0', '22.23.3', '24.21.0'];

let ground: Ground;
let connection: Connection;
let caller: FollowUpCaller;
const cwd = temporaryFolder();

beforeAll(async () => {
  ground = await Ground.open();
  connection = await Connection.connect({ address: ground.server.address });
  const { followUp, agentApi: read, agentApiSend: send } = DEFAULT_TASK_QUEUES;
  caller = new FollowUpCaller(ground.sandbox, new Client({ connection }), { followUp, read, send });
  // The user nobody works in it.
  await mustRun('chmod', ['755', cwd], { cwd });
  const programs = NODES.map(
    (version) => `${version}@npm:node-${process.platform}-${process.arch}@${version}`,
  );
  await mustRun('npm', [...NPM_INSTALL, '--prefix', cwd, ...programs.map((each) => `node-${each}`)], { cwd });
});

afterAll(async () => {
  await connection.close();
  await ground.close();
});

it.each(NODES)(
  'the worker artefact works under Node %s, as a user who may write nowhere in it, and ends on SIGTERM',
  async (version) => {
    const worker = await ground.startWorker(path.join(cwd, `node_modules/node-${version}/bin/node`));
    expect(await worker.answersReadyz(200)).toEqual([]);
    const { status, prLink } = await (await caller.follow()).result();
    expect({ status, prLink }).toEqual({ status: 'completed', prLink: expect.stringContaining('/pull/') });
    worker.signal('SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  },
);
