/**
 * The programs that a team writes next to its own version of the SDK. The same source is compiled as CommonJS and as an ES module.
 * Each program gets the folder of its project from the working directory.
 */

/** Bundles the team's workflows and the follow-up workflows with the team's version of the SDK. */
export const BUNDLE_PROGRAM = `
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';
import { createAgentApi, FollowUpPlugin, keyFromText } from 'agent-follow-up-plugin';
const agentApi = createAgentApi({ baseUrl: 'http://localhost', apiKey: keyFromText('unused-key-1234'), timeoutMs: 5_000 });
const workflowsPath = path.resolve('workflows.cjs');
void bundleWorkflowCode({ workflowsPath, plugins: [new FollowUpPlugin({ agentApi })] }).then(async ({ code }) => {
  writeFileSync('bundle.js', code);
  await agentApi.close();
});
`;

/** A team's workflow that runs a follow-up as its child. */
export const WORKFLOWS = `
import { executeFollowUp, type FollowUpRequest } from 'agent-follow-up-client/workflow';
export async function publish(request: FollowUpRequest & { readonly requestId: string }): Promise<string | null> {
  return (await executeFollowUp(request)).prLink;
}
`;

/**
 * Runs one worker, and sends follow-ups with both kinds of clients and with the team's workflow. Prints one line with the name of the
 * plugin and the links.
 */
export const PROGRAM = `
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { FollowUpClient } from 'agent-follow-up-client';
import { InMemoryFollowUpClient } from 'agent-follow-up-client/testing';
import { createAgentApi, FollowUpPlugin, keyFromText } from 'agent-follow-up-plugin';

const { TEMPORAL_ADDRESS = '', AGENT_API_BASE_URL = '', AGENT_API_KEY = '', TASK_QUEUE = '' } = process.env;
const jobIds = process.argv.slice(2);

async function send(): Promise<(string | null)[]> {
  const connection = await Connection.connect({ address: TEMPORAL_ADDRESS });
  const client = new Client({ connection });
  const own = new FollowUpClient(client, { taskQueue: TASK_QUEUE });
  const connected = await FollowUpClient.connect({ taskQueue: TASK_QUEUE });
  const inMemory = new InMemoryFollowUpClient(() => ({ job: { prLink: 'https://git.example/pull/1' } }));
  const polling = { initial: '200ms', maximum: '500ms' } as const;
  const [first, second, third, fourth] = jobIds.map((jobId, index) => ({
    ...{ projectId: TASK_QUEUE, jobId, requestId: String(index), prompt: 'Please fix the typo.' },
    ...{ polling, maxStaleness: '100ms' as const },
  }));
  if (!first || !second || !third || !fourth) throw new Error('the program needs the IDs of four jobs');
  const results = await Promise.all([own.execute(first), connected.execute(second), inMemory.execute(third)]);
  const workflow = { args: [fourth], workflowId: TASK_QUEUE, taskQueue: TASK_QUEUE };
  const childLink = (await client.workflow.execute('publish', workflow)) as string | null;
  const links = [...results.map(({ prLink }) => prLink), childLink];
  await connected.close();
  await connection.close();
  return links;
}

async function main(): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
  const connection = await NativeConnection.connect({ address: TEMPORAL_ADDRESS });
  const agentApi = createAgentApi({ baseUrl: AGENT_API_BASE_URL, apiKey: keyFromText(AGENT_API_KEY), timeoutMs: 5_000 });
  const plugin = new FollowUpPlugin({ agentApi });
  const workflowBundle = { codePath: path.resolve('bundle.js') };
  const worker = await Worker.create({ connection, taskQueue: TASK_QUEUE, workflowBundle, plugins: [plugin] });
  const links = await worker.runUntil(send);
  await agentApi.close();
  await connection.close();
  console.log(plugin.name, JSON.stringify(links));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
`;

/** A module that renames a private part in the SDK's files before they run. The rest of the SDK works as before. */
export const RENAME_PRIVATE_PART = `
const Module = require('node:module');
const compile = Module.prototype._compile;
const part = new RegExp(process.env.PRIVATE_PART, 'g');
const files = new RegExp('@temporalio.' + process.env.PRIVATE_FILES + '[.]js$');
Module.prototype._compile = function (code, file, ...others) {
  return compile.call(this, files.test(file) ? code.replace(part, 'renamed_$&') : code, file, ...others);
};
`;
