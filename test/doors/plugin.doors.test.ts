import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { mustRun, Program } from '../harness/program';
import { ROOT } from '../harness/worker-process';
import { examplesOf, Ground, teamFolder } from './ground';

// The team's worker bundles its workflows, and a follow-up with the default times takes half a minute and more.
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
export * from './release';
export * from 'agent-follow-up-plugin/workflows';
export const ownWorkflow = async (name: string) => 'hello ' + name;
`;
const QUEUE = "taskQueue: 'our-queue',";
/** That of the page, by way of the team's own queue. */
const RELEASE = (examplesOf('docs/callers.md')[1] ?? '').replace(
  "taskQueue: 'follow-up'",
  "taskQueue: 'our-queue'",
);

/** That of the page, with workflows, a codec and interceptors of the team. */
const WORKER = (examplesOf('docs/plugin.md')[0] ?? '').replace(
  QUEUE,
  `${QUEUE}
    workflowsPath: require.resolve('./workflows.ts'),
    dataConverter: require('./codec.js').dataConverter,
    interceptors: { activity: [intercepted] },`,
);
const INTERCEPTED = `
function intercepted({ info }) {
  console.log('intercepted', info.activityType);
  return { inbound: { execute: (input, next) => next(input) } };
}
`;

/** A service of the same team. */
const SERVICE = `
const { Client, Connection } = require('@temporalio/client');
const { FollowUpClient } = require('agent-follow-up-client');
const { dataConverter } = require('./codec.js');

async function main() {
  const [projectId, jobId] = process.argv.slice(2);
  const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS });
  const client = new Client({ connection, dataConverter });
  const execute = (workflowId, arg) =>
    client.workflow.execute(workflowId, { taskQueue: 'our-queue', workflowId, args: [arg] });
  const released = execute('release', '7.2');
  console.log(await execute('ownWorkflow', 'team'));
  const followUps = new FollowUpClient(client, { taskQueue: 'our-queue' });
  const times = { polling: { initial: '500ms', maximum: '500ms', timerPolls: 1 }, confirm: '1s' };
  const request = { projectId, jobId, requestId: 'one', prompt: 'A secret prompt.', ...times };
  const handle = await followUps.start(request);
  const job = await handle.result();
  const again = await followUps.start(request);
  console.log(job.status, job.followUp.evidence, again.attached, again.promptCompared);
  const batch = await followUps.batches.start([{ projectId, jobId, prompt: 'Another.', ...times }], { batchId: 'one' });
  console.log((await batch.result()).state);
  console.log(await released);
  await connection.close();
}
main();
`;

let ground: Ground;
beforeAll(async () => {
  ground = await Ground.open();
});
afterAll(() => ground.close());

it('the plugin runs follow-ups and batches in a team’s own worker, beside the workflows of the team, with its queue, codec and interceptors', async () => {
  const { server, sandbox } = ground;
  const cwd = teamFolder('plugin', {
    'codec.js': CODEC,
    'data-converter.js': readFileSync(path.join(ROOT, 'examples/encryption/data-converter.js'), 'utf8'),
    'workflows.ts': WORKFLOWS,
    'release.ts': RELEASE,
    'worker.ts': WORKER + INTERCEPTED,
    'service.js': SERVICE,
    key: randomBytes(32).toString('base64'),
  });
  const env = { ...ground.env, ...ground.workerEnv, PAYLOAD_KEY_FILE: path.join(cwd, 'key') };
  const worker = new Program(process.execPath, ['--import', 'tsx', 'worker.ts'], { cwd, env });
  sandbox.addJob({ projectId: 'docs', id: 'job-1', turn: { reads: 2 } });
  const { projectId, jobId } = sandbox.addJob({ turn: { reads: 2 } });
  const told = await mustRun('node', ['service.js', projectId, jobId], { cwd, env }).finally(() => {
    worker.signal('SIGTERM');
  });
  expect(told).toMatch(/^hello team\ncompleted seen-active ended true\ndone\nhttp\S+\/pull\/\d+\n$/);
  const words = ['workflow', 'show', '--address', server.address, '--output', 'json'];
  const id = ['--workflow-id', `follow-up:${projectId}:${jobId}:one`];
  const shown = await mustRun('temporal', [...words, ...id], { cwd, env });
  expect(shown).not.toContain(Buffer.from('A secret prompt.').toString('base64').slice(0, 16));
  const { code, stdout } = await worker.ended();
  expect(code).toBe(0);
  for (const type of ['sendMessage', 'pollJob']) expect(stdout).toContain(`intercepted ${type}`);
});
