import { randomBytes } from 'node:crypto';
import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { dependencies } from '../../package.json';
import { eventually } from '../harness/eventually';
import { artifact, Ground, mustRun, temporaryFolder } from './ground';

// The SDK with its native core is downloaded, and the team's worker bundles its workflows.
jest.setTimeout(300_000);

/** A team's codec: nobody without the key can read a payload, and nothing that is not encrypted is accepted. */
const CODEC = `
const { createCipheriv, createDecipheriv } = require('node:crypto');
const key = Buffer.from(process.env.TEAM_KEY, 'hex');
const base64 = (bytes) => Buffer.from(bytes ?? []).toString('base64');
const encode = (payload) => {
  const metadata = Object.entries(payload.metadata ?? {}).map(([name, bytes]) => [name, base64(bytes)]);
  const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const text = JSON.stringify({ metadata, data: base64(payload.data) });
  return { metadata: { encoding: Buffer.from('team/secret') }, data: cipher.update(text) };
};
const decode = (payload) => {
  if (Buffer.from(payload.metadata?.encoding ?? []).toString() !== 'team/secret') throw new Error('not encrypted');
  const decipher = createDecipheriv('aes-256-ctr', key, Buffer.alloc(16));
  const { metadata, data } = JSON.parse(decipher.update(Buffer.from(payload.data)).toString());
  const fields = metadata.map(([name, bytes]) => [name, Buffer.from(bytes, 'base64')]);
  return { metadata: Object.fromEntries(fields), data: Buffer.from(data, 'base64') };
};
exports.dataConverter = {
  payloadCodecs: [{ encode: async (all) => all.map(encode), decode: async (all) => all.map(decode) }],
};
`;

/** The team's workflows, with ours beside them. */
const WORKFLOWS = `
exports.ownWorkflow = async (name) => 'hello ' + name;
Object.assign(exports, require('agent-follow-up-client/workflows'));
`;

/** The team's worker: a queue, activities, a codec and interceptors of its own. */
const WORKER = `
const { NativeConnection, Worker } = require('@temporalio/worker');
const { createAgentApi, FollowUpPlugin, keyFromText } = require('agent-follow-up-client/worker');
const { dataConverter } = require('./codec.cjs');

async function main() {
  const { TEMPORAL_ADDRESS: address, AGENT_API_BASE_URL: baseUrl, AGENT_API_KEY: key } = process.env;
  const connection = await NativeConnection.connect({ address });
  const seen = new Set();
  const inbound = { execute: (input, next) => next(input) };
  const agentApi = createAgentApi({ baseUrl, apiKey: keyFromText(key), timeoutMs: 5_000 });
  const worker = await Worker.create({
    connection,
    taskQueue: 'the-team',
    workflowsPath: require.resolve('./workflows.cjs'),
    activities: { ownActivity: async () => 'done' },
    dataConverter,
    interceptors: {
      activity: [
        (context) => {
          console.log('intercepted', context.info.activityType);
          return { inbound };
        },
      ],
    },
    plugins: [new FollowUpPlugin({ agentApi, inProcessPolls: 10 })],
  });
  process.on('SIGTERM', () => worker.shutdown());
  console.log('created');
  await worker.run();
  await agentApi.close();
  await connection.close();
  console.log('ended');
}
main();
`;

/** A service of the same team. */
const SERVICE = `
const { Client, Connection } = require('@temporalio/client');
const { FollowUpClient } = require('agent-follow-up-client');
const { dataConverter } = require('./codec.cjs');

async function main() {
  const [projectId, jobId] = process.argv.slice(2);
  const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS });
  const client = new Client({ connection, dataConverter });
  console.log(await client.workflow.execute('ownWorkflow', { taskQueue: 'the-team', workflowId: 'own', args: ['team'] }));
  const followUps = new FollowUpClient(client, { taskQueue: 'the-team' });
  const polling = { initial: '500ms', maximum: '500ms', timerPolls: 1 };
  const request = { projectId, jobId, requestId: 'one', prompt: 'A secret prompt.', polling };
  const handle = await followUps.start(request);
  const job = await handle.result();
  const again = await followUps.start(request);
  console.log(job.status, job.followUp.evidence, again.attached, again.promptCompared);
  const batch = await followUps.batches.start([{ projectId, jobId, prompt: 'Another.', polling }], { batchId: 'one' });
  console.log((await batch.result()).state);
  await connection.close();
}
main();
`;

let ground: Ground;
let place: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  [ground, place] = await Promise.all([Ground.open(), temporaryFolder()]);
  const files = {
    'codec.cjs': CODEC,
    'workflows.cjs': WORKFLOWS,
    'worker.cjs': WORKER,
    'service.cjs': SERVICE,
  };
  for (const [name, code] of Object.entries(files)) await writeFile(path.join(place.folder, name), code);
  await writeFile(path.join(place.folder, 'package.json'), '{ "name": "team", "private": true }');
  const names = ['activity', 'client', 'common', 'envconfig', 'worker', 'workflow'] as const;
  const sdk = names.map((name) => `@temporalio/${name}@${dependencies[`@temporalio/${name}`]}`);
  const others = (['undici', 'zod'] as const).map((name) => `${name}@${dependencies[name]}`);
  const install = ['install', '--no-audit', '--no-fund', artifact('client'), ...sdk, ...others];
  await mustRun('npm', install, { cwd: place.folder, env: ground.env });
});

afterAll(async () => {
  await ground.close();
  await place.remove();
});

describe("the plugin in a team's own worker", () => {
  it('runs follow-ups and batches beside the workflows of the team, with its queue, codec and interceptors', async () => {
    const { server, sandbox } = ground;
    const env = {
      ...ground.env,
      TEAM_KEY: randomBytes(32).toString('hex'),
      AGENT_API_BASE_URL: sandbox.baseUrl,
      AGENT_API_KEY: sandbox.apiKey,
    };
    const worker = spawn(process.execPath, ['worker.cjs'], { cwd: place.folder, env });
    let printed = '';
    for (const stream of [worker.stdout, worker.stderr])
      stream.on('data', (text: Buffer) => (printed += text.toString()));
    const exited = new Promise((resolve) => worker.once('exit', resolve));
    try {
      await eventually('the worker is created', () => printed.includes('created'), { timeoutMs: 60_000 });
      const { projectId, jobId } = sandbox.addJob({ turn: { durationMs: 4_000 } });
      const told = await mustRun('node', ['service.cjs', projectId, jobId], { cwd: place.folder, env });
      expect(told.split('\n')).toEqual(['hello team', 'completed seen-active ended true', 'done', '']);
      expect(printed).toContain('intercepted sendMessage');
      expect(printed).toContain('intercepted pollJob');
      const shown = await mustRun(
        'temporal',
        [
          'workflow',
          'show',
          '--address',
          server.address,
          '--workflow-id',
          `follow-up:${projectId}:${jobId}:one`,
          '--output',
          'json',
        ],
        { cwd: place.folder, env },
      );
      expect(shown).not.toContain(Buffer.from('A secret prompt.').toString('base64').slice(0, 16));
      worker.kill('SIGTERM');
      expect(await exited).toBe(0);
      expect(printed).toContain('ended');
    } finally {
      worker.kill('SIGKILL');
    }
  });
});
