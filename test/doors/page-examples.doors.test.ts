import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { dependencies, devDependencies } from '../../package.json';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';
import { artifact, Ground, mustRun } from './ground';

// A first installation downloads the SDK and TypeScript; a follow-up with the defaults takes half a minute and more.
jest.setTimeout(300_000);

/** The TypeScript of a page, as it stands there. */
const examplesOf = (page: string): string[] =>
  [...readFileSync(path.join(ROOT, page), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(
    ([, code = '']) => code,
  );

const CLIENT = `
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient } from 'agent-follow-up-client';
const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '' });
const client = new Client({ connection });
`;
const REQUEST =
  "{ projectId: 'docs', jobId: 'job-1', requestId: 'order-4711', prompt: 'Please fix the typo.' }";

/** Programs of the pages' examples, and of what stands around a part of a program. */
const PROGRAMS = [
  { file: 'readme.mts', page: 'README.md', prints: /^completed http\S+ seen-active\n$/ },
  {
    file: 'client.mts',
    page: 'docs/client.md',
    prints: /^follow-up:docs:job-1:order-4711 ended\ncompleted http/,
  },
  {
    file: 'errors.mts',
    page: 'docs/callers.md',
    before: `${CLIENT}import { hasCode } from 'agent-follow-up-client';
      const [followUps, request] = [new FollowUpClient(client), ${REQUEST}];`,
    after: 'await followUps.close(); await connection.close();',
    prints: /^completed http\S+\n$/,
  },
  {
    file: 'schedules.mts',
    page: 'docs/schedules.md',
    before: `${CLIENT}const followUps = new FollowUpClient(client);
      const requests = [{ projectId: 'docs', jobId: 'job-1', prompt: 'Rebase on main.' }];
      const otherRequests = [{ projectId: 'docs', jobId: 'job-1', prompt: 'Merge main.' }];`,
    after: 'console.log(batchId); await followUps.close(); await connection.close();',
    prints: /^nightly-\d{4}-\d\d-\d\dT[\d:]+Z\n$/,
  },
  { file: 'sandbox.mts', page: 'docs/sandbox.md', prints: /^http:\/\/127\.0\.0\.1:\d+ sandbox_\w+\n0\n$/ },
] as const;

/** The rest of those examples: a worker in both module systems, and a workflow. */
const WORKERS = ['worker.cts', 'worker.mts'];
const WORKFLOW = 'release.ts';
const RUNNER = `
const { NativeConnection, Worker } = require('@temporalio/worker');
const { Client } = require('@temporalio/client');
async function main() {
  const connection = await NativeConnection.connect({ address: process.env.TEMPORAL_ADDRESS });
  const workflowsPath = require.resolve('./release.js');
  const worker = await Worker.create({ connection, taskQueue: 'releases', workflowsPath });
  const options = { taskQueue: 'releases', workflowId: 'release', args: ['7.2'] };
  console.log(await worker.runUntil(new Client({ connection }).workflow.execute('release', options)));
  await connection.close();
}
main();
`;

let ground: Ground;
const inProject = () => ({ cwd: folder, env: ground.env });

beforeAll(async () => {
  ground = await Ground.open(folder);
  await ground.startWorker();
  ground.sandbox.addJob({ projectId: 'docs', id: 'job-1', turn: { reads: 2 } });
  await writeFile(path.join(folder, 'package.json'), '{ "name": "reader", "private": true }');
  for (const { file, page, ...around } of PROGRAMS) {
    const { before, after } = { before: '', after: '', ...around };
    const [example = ''] = examplesOf(page);
    await writeFile(path.join(folder, file), `${before}\n${example}${after}\n`);
  }
  const [worker = ''] = examplesOf('docs/plugin.md');
  for (const file of WORKERS) await writeFile(path.join(folder, file), worker);
  await writeFile(path.join(folder, WORKFLOW), examplesOf('docs/callers.md')[1] ?? '');
  await writeFile(path.join(folder, 'runner.js'), RUNNER);
  const compiler = (['typescript', '@types/node'] as const).map((name) => `${name}@${devDependencies[name]}`);
  const sdk = (['worker', 'workflow'] as const).map(
    (name) => `@temporalio/${name}@${dependencies[`@temporalio/${name}`]}`,
  );
  const archives = [artifact('client'), artifact('plugin'), artifact('sandbox')];
  await mustRun('npm', ['install', '--no-audit', '--no-fund', ...archives, ...sdk, ...compiler], inProject());
  const files = [...PROGRAMS.map(({ file }) => file), ...WORKERS, WORKFLOW];
  const strictly = ['--target', 'es2022', '--module', 'node16', '--types', 'node', '--strict'];
  await mustRun('npx', ['tsc', ...strictly, '--skipLibCheck', 'false', ...files], inProject());
});

afterAll(() => ground.close());

/** Removed when nothing runs in it any more. */
const folder = temporaryFolder();

it('covers each example in TypeScript of each page', () => {
  const docs = readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs.map((name) => `docs/${name}`)];
  const found = pages.flatMap((page) => examplesOf(page).map(() => page));
  // That of docs/testing.md is run by client-package.doors.test.ts.
  const others = ['docs/plugin.md', 'docs/callers.md', 'docs/testing.md'];
  const covered = [...PROGRAMS.map(({ page }) => page as string), ...others];
  expect(found.sort()).toEqual(covered.sort());
});

it('those that are programs, or parts of one, print what they say, and send one message to a name', async () => {
  for (const { file, prints } of PROGRAMS) {
    const printed = await mustRun('node', [file.replace('.mts', '.mjs')], inProject());
    expect({ file, printed }).toEqual({ file, printed: expect.stringMatching(prints) });
  }
  const texts = ground.sandbox.journal.entries({ operation: 'message' }).map(({ prompt }) => prompt?.text);
  expect(texts.filter((text) => text === 'Please fix the typo.')).toHaveLength(1);
});

it('the workflow sends a follow-up, and returns its link', async () => {
  const printed = await mustRun('node', ['runner.js'], inProject());
  expect(printed).toMatch(/^http\S+\/pull\/\d+\n$/);
});

it.each(WORKERS)('the plugin’s worker, as %s, does a follow-up, and ends on SIGTERM', async (file) => {
  const { baseUrl, apiKey } = ground.sandbox;
  const env = { ...ground.env, AGENT_API_BASE_URL: baseUrl, AGENT_API_KEY: apiKey };
  const program = file.replace('ts', 'js');
  const worker = spawn(process.execPath, [program], { cwd: folder, env, stdio: 'inherit' });
  const exited = once(worker, 'exit');
  try {
    const { jobId } = ground.sandbox.addJob({ projectId: 'docs', turn: { reads: 2 } });
    const words = ['send', '--project', 'docs', '--job', jobId, '--prompt', 'Go on.', '--confirm', '1s'];
    const caller = { cwd: folder, env: { ...ground.env, FOLLOW_UP_TASK_QUEUE: 'our-queue' } };
    const printed = await mustRun('node', [ground.worker('dist/starter.js'), ...words], caller);
    expect(printed).toMatch(/^status +completed$/m);
    worker.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  } finally {
    worker.kill('SIGKILL');
  }
});
