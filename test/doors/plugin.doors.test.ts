import { randomBytes } from 'node:crypto';
import { spawn } from 'node:child_process';
import { copyFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { dependencies } from '../../package.json';
import { eventually } from '../harness/eventually';
import { ROOT } from '../harness/worker-process';
import { temporaryFolder } from '../harness/temporary-folder';
import { artifact, Ground, mustRun } from './ground';

// The SDK with its native core is downloaded, and the team's worker bundles its workflows.
jest.setTimeout(300_000);

/** The example's codec, and nothing that is not encrypted is accepted. */
const CODEC = `
const { encode, decode } = require('./data-converter.js').dataConverter.payloadCodecs[0];
const isEncrypted = ({ metadata }) => Buffer.from(metadata?.encoding ?? []).toString() === 'binary/encrypted';
const decodeStrictly = async (payloads) => {
  if (!payloads.every(isEncrypted)) throw new Error('not encrypted');
  return decode(payloads);
};
exports.dataConverter = { payloadCodecs: [{ encode, decode: decodeStrictly }] };
`;

/** The team's workflows, with ours beside them. */
const WORKFLOWS = `
const { executeFollowUp } = require('agent-follow-up-client/workflow');
exports.ownWorkflow = async (name) => 'hello ' + name;
exports.sending = async (request) => (await executeFollowUp(request, { taskQueue: 'the-team' })).status;
Object.assign(exports, require('agent-follow-up-plugin/workflows'));
`;

/** The team's worker: a queue, activities, a codec and interceptors of its own. */
const WORKER = `
const { NativeConnection, Worker } = require('@temporalio/worker');
const { createAgentApi, FollowUpPlugin, keyFromText } = require('agent-follow-up-plugin');
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
  const times = { polling: { initial: '500ms', maximum: '500ms', timerPolls: 1 }, confirm: '1s' };
  const request = { projectId, jobId, requestId: 'one', prompt: 'A secret prompt.', ...times };
  const handle = await followUps.start(request);
  const job = await handle.result();
  const again = await followUps.start(request);
  console.log(job.status, job.followUp.evidence, again.attached, again.promptCompared);
  const batch = await followUps.batches.start([{ projectId, jobId, prompt: 'Another.', ...times }], { batchId: 'one' });
  console.log((await batch.result()).state);
  const child = { ...request, requestId: 'child' };
  console.log(await client.workflow.execute('sending', { taskQueue: 'the-team', workflowId: 'sending', args: [child] }));
  await connection.close();
}
main();
`;

let ground: Ground;

beforeAll(async () => {
  ground = await Ground.open(folder);
  const files = {
    'codec.cjs': CODEC,
    'workflows.cjs': WORKFLOWS,
    'worker.cjs': WORKER,
    'service.cjs': SERVICE,
    'package.json': '{ "name": "team", "private": true }',
    key: randomBytes(32).toString('base64'),
  };
  const inPlace = (name: string) => path.join(folder, name);
  for (const [name, text] of Object.entries(files)) await writeFile(inPlace(name), text);
  await copyFile(path.join(ROOT, 'examples/encryption/data-converter.js'), inPlace('data-converter.js'));
  const names = ['activity', 'client', 'common', 'envconfig', 'worker', 'workflow'] as const;
  const sdk = names.map((name) => `@temporalio/${name}@${dependencies[`@temporalio/${name}`]}`);
  // The team's own zod and undici are other ones than the plugin's.
  const others = ['undici@6.23.0', 'zod@3.25.76'];
  const packages = [artifact('client'), artifact('plugin')];
  const install = ['install', '--no-audit', '--no-fund', ...packages, ...sdk, ...others];
  await mustRun('npm', install, { cwd: folder, env: ground.env });
});

afterAll(() => ground.close());

/** Removed when nothing runs in it any more. */
const folder = temporaryFolder();

it('the plugin runs follow-ups and batches in a team’s own worker, beside the workflows of the team, with its queue, codec and interceptors', async () => {
  const { server, sandbox } = ground;
  const env = {
    ...ground.env,
    PAYLOAD_KEY_FILE: path.join(folder, 'key'),
    AGENT_API_BASE_URL: sandbox.baseUrl,
    AGENT_API_KEY: sandbox.apiKey,
  };
  const worker = spawn(process.execPath, ['worker.cjs'], { cwd: folder, env });
  let printed = '';
  for (const stream of [worker.stdout, worker.stderr])
    stream.on('data', (text: Buffer) => (printed += text.toString()));
  const exited = new Promise((resolve) => worker.once('exit', resolve));
  try {
    await eventually('the worker is created', () => printed.includes('created'));
    const { projectId, jobId } = sandbox.addJob({ turn: { reads: 2 } });
    const told = await mustRun('node', ['service.cjs', projectId, jobId], { cwd: folder, env });
    expect(told).toBe('hello team\ncompleted seen-active ended true\ndone\ncompleted\n');
    expect(printed).toContain('intercepted sendMessage');
    expect(printed).toContain('intercepted pollJob');
    const words = ['workflow', 'show', '--address', server.address, '--output', 'json'];
    const id = ['--workflow-id', `follow-up:${projectId}:${jobId}:one`];
    const shown = await mustRun('temporal', [...words, ...id], { cwd: folder, env });
    expect(shown).not.toContain(Buffer.from('A secret prompt.').toString('base64').slice(0, 16));
    worker.kill('SIGTERM');
    expect(await exited).toBe(0);
    expect(printed).toContain('ended');
  } finally {
    worker.kill('SIGKILL');
  }
});
