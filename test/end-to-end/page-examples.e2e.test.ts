import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mustRun, Program } from '../harness/program';
import { ROOT } from '../harness/worker-process';
import {
  readPageExamples,
  type EndToEndEnvironment,
  openEndToEndEnvironment,
  STRICT_COMPILER_FLAGS,
  createProjectFolder,
} from './end-to-end-environment';

const CLIENT = `
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient } from 'agent-follow-up-client';
const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? '' });
const client = new Client({ connection });
`;
const REQUEST =
  "{ projectId: 'docs', jobId: 'job-1', requestId: 'order-4711', prompt: 'Please fix the typo.' }";
const CLOSE = 'await followUps.close(); await connection.close();';

/** The examples of the pages. `before` and `after` complete a part of a program, and `prints` is the expected output of a program. */
const EXAMPLES = [
  { file: 'readme.mts', page: 'README.md', prints: /^completed http\S+ seen-active\n$/ },
  {
    file: 'client.mts',
    page: 'docs/client.md',
    prints: /^follow-up:docs:job-1:order-4711 ended\ncompleted ht/,
  },
  {
    file: 'retry-all.mts',
    page: 'docs/client.md',
    nth: 1,
    before: `${CLIENT}const followUps = new FollowUpClient(client);`,
    after: CLOSE,
    prints: /^$/,
  },
  {
    file: 'http-status.mts',
    page: 'docs/client.md',
    nth: 4,
    after: "console.log(toHttpStatus(new FollowUpError('REJECTED', 'The job is active.')));",
    prints: /^502\n$/,
  },
  {
    file: 'errors.mts',
    page: 'docs/callers.md',
    before: `${CLIENT}import { hasCode } from 'agent-follow-up-client';
      const [followUps, request] = [new FollowUpClient(client), ${REQUEST}];`,
    after: CLOSE,
    // On a busy machine, the call may reach its timeout of two seconds.
    prints:
      /^(completed http\S+|started; get it with \S+|repeat the same call: the start was not confirmed)\n$/,
  },
  {
    file: 'batches.mts',
    page: 'docs/batches.md',
    before: `${CLIENT}const followUps = new FollowUpClient(client);
      const requests = [{ projectId: 'docs', jobId: 'job-1', prompt: 'Rebase on main.' }];`,
    after: CLOSE,
    prints: /^job-1 completed\ndone { completed: 1 }\n$/,
  },
  {
    file: 'schedules.mts',
    page: 'docs/schedules.md',
    before: `${CLIENT}const followUps = new FollowUpClient(client);
      const requests = [{ projectId: 'docs', jobId: 'job-1', prompt: 'Rebase on main.' }];
      const otherRequests = [{ projectId: 'docs', jobId: 'job-1', prompt: 'Merge main.' }];`,
    after: `console.log((await nightly.describe()).state.note); ${CLOSE}`,
    prints: /^holidays\n$/,
  },
  {
    file: 'evidence.mts',
    page: 'docs/result.md',
    before: `${CLIENT}const followUps = new FollowUpClient(client);
      const handle = await followUps.start(${REQUEST});
      const mergePullRequest = async (link: string | null) => console.log('merge', link);
      const requestReview = async (link: string | null, id: string) => console.log('review', link, id);`,
    after: CLOSE,
    prints: /^merge http\S+\n$/,
  },
  { file: 'sandbox.mts', page: 'docs/sandbox.md', prints: /^http:\/\/127\.0\.0\.1:\d+ sandbox_\w+\n0\n$/ },
  // Another test below runs the next two examples in a team's worker.
  { file: 'worker.mts', page: 'docs/plugin.md' },
  { file: 'release.mts', page: 'docs/callers.md', nth: 1 },
  { file: 'example.test.ts', page: 'docs/testing.md' },
  // client-tests.e2e.test.ts runs the next two examples.
  { file: 'jest.test.ts', page: 'docs/client.md', nth: 2 },
  { file: 'vitest.test.ts', page: 'docs/client.md', nth: 3 },
] as const;

let environment: EndToEndEnvironment;
let cwd: string;
const inProject = () => ({ cwd, env: environment.env });

beforeAll(async () => {
  environment = await openEndToEndEnvironment();
  await environment.startWorker();
  environment.sandbox.addJob({ projectId: 'docs', id: 'job-1', turn: { reads: 2 } });
  const programs = EXAMPLES.map(({ file, page, ...around }) => {
    const { before, after, nth } = { before: '', after: '', nth: 0, ...around };
    return [file, `${before}\n${readPageExamples(page)[nth] ?? ''}${after}\n`];
  });
  cwd = createProjectFolder('pages', Object.fromEntries(programs) as Record<string, string>);
  // The examples use the repository's Jest, so that the test does not install Jest.
  mkdirSync(path.join(cwd, 'node_modules/@jest'), { recursive: true });
  const globals = 'node_modules/@jest/globals';
  symlinkSync(path.join(ROOT, globals), path.join(cwd, globals));
  // The project does not have Vitest.
  const files = EXAMPLES.map(({ file }) => file).filter((file) => file !== 'vitest.test.ts');
  await mustRun('npx', ['tsc', ...STRICT_COMPILER_FLAGS, '--module', 'node16', ...files], inProject());
});

afterAll(() => environment.close());

it('covers every TypeScript example of every page', () => {
  const docs = readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs.map((name) => `docs/${name}`)];
  const pagesOfExamples = pages.flatMap((page) => readPageExamples(page).map(() => page));
  expect(pagesOfExamples.sort()).toEqual(EXAMPLES.map(({ page }) => page as string).sort());
});

it.each(EXAMPLES.filter((example) => 'prints' in example))(
  'the example $file of $page prints the expected output',
  async ({ file, prints }) => {
    expect(await mustRun('node', [file.replace('.mts', '.mjs')], inProject())).toMatch(prints);
  },
);

it('the examples send one message for each request ID', () => {
  const texts = environment.sandbox.journal
    .entries({ operation: 'message' })
    .map(({ prompt }) => prompt?.text);
  expect(texts.filter((text) => text === 'Please fix the typo.')).toHaveLength(1);
});

it('the tests of docs/testing.md pass with Jest', async () => {
  const [config = ''] = readPageExamples('docs/testing.md', 'js');
  const compiler = JSON.stringify(path.join(ROOT, 'node_modules/@swc/jest'));
  const cwd = createProjectFolder('testing', {
    'example.test.ts': readPageExamples('docs/testing.md')[0] ?? '',
    'jest.config.mjs': config.replace("'@swc/jest'", compiler),
  });
  const { stderr } = await new Program('node', [path.join(ROOT, 'node_modules/.bin/jest')], {
    cwd,
  }).waitForEnd();
  expect(stderr).toContain('Tests:       4 passed, 4 total');
});

const [PAGE_WORKER = ''] = readPageExamples('docs/plugin.md');
const [, PAGE_WORKFLOW = ''] = readPageExamples('docs/callers.md');
const QUEUE = "taskQueue: 'our-queue',";

const TEAM = {
  'encryption.js': readFileSync(path.join(ROOT, 'examples/encryption/plugin.js'), 'utf8'),
  key: randomBytes(32).toString('base64'),
  'release.ts': PAGE_WORKFLOW.replace("'follow-up'", "'our-queue'"),
  'workflows.ts': `
export * from './release';
export const ownWorkflow = async (name: string) => 'hello ' + name;
`,
  'worker.ts':
    PAGE_WORKER.replace('plugins: [', "plugins: [require('./encryption.js'), ").replace(
      QUEUE,
      `${QUEUE}
    workflowsPath: require.resolve('./workflows.ts'),
    interceptors: { activity: [intercepted] },`,
    ) +
    `
function intercepted({ info }) {
  console.log('intercepted', info.activityType);
  return { inbound: { execute: (input, next) => next(input) } };
}
`,
  'service.js': `
const { Client, Connection } = require('@temporalio/client');
const { FollowUpClient } = require('agent-follow-up-client');
const encryption = require('./encryption.js');

async function main() {
  const [projectId, jobId] = process.argv.slice(2);
  const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS });
  const client = new Client({ connection, plugins: [encryption] });
  const execute = (workflowId, arg) =>
    client.workflow.execute(workflowId, { taskQueue: 'our-queue', workflowId, args: [arg] });
  const released = execute('release', '7.2');
  console.log(await execute('ownWorkflow', 'team'));
  const { batches } = new FollowUpClient(client, { taskQueue: 'our-queue' });
  const times = { polling: { initial: '500ms', maximum: '500ms', timerPolls: 1 }, maxStaleness: '1s' };
  const batch = await batches.start([{ projectId, jobId, prompt: 'Another.', ...times }], { batchId: 'one' });
  const { state, summary } = await batch.result();
  console.log(state, summary.byStatus, await released);
  await connection.close();
}
main();
`,
};

it('the plugin runs follow-ups and batches in a team’s worker next to the team’s workflows, with its task queue, codec and interceptors', async () => {
  const cwd = createProjectFolder('plugin', TEAM);
  const env = { ...environment.env, ...environment.workerEnv, PAYLOAD_KEY_FILE: path.join(cwd, 'key') };
  const worker = new Program(process.execPath, ['--import', 'tsx', 'worker.ts'], { cwd, env });
  const { projectId, jobId } = environment.sandbox.addJob({ turn: { reads: 2 } });
  const output = await mustRun('node', ['service.js', projectId, jobId], { cwd, env }).finally(() => {
    worker.signal('SIGTERM');
  });
  expect(output).toMatch(/^hello team\ndone { completed: 1 } http\S+\/pull\/\d+\n$/);
  const { code, stdout } = await worker.waitForEnd();
  expect(code).toBe(0);
  for (const type of ['sendMessage', 'getJob']) expect(stdout).toContain(`intercepted ${type}`);
});
