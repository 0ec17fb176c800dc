import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { dependencies, devDependencies } from '../../package.json';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';
import { artifact, Ground, mustRun, run } from './ground';

// A first installation downloads the SDK and TypeScript.
jest.setTimeout(300_000);

let ground: Ground;
const inProject = () => ({ cwd: folder, env: ground.env });

/** Sends a follow-up to the job `argv[2]`, and prints how it ended. */
const STORY = `
async function story() {
  const followUps = await FollowUpClient.connect();
  const [projectId = '', jobId = ''] = process.argv.slice(2);
  const times = { polling: { initial: '500ms', maximum: '1s' }, confirm: '1s' } as const;
  const request = { projectId, jobId, requestId: 'one', prompt: 'Please fix the typo.', ...times };
  const handle = await followUps.start(request);
  const job = await handle.result();
  console.log(job.status, job.prLink, handle.attached);
  const missing = await followUps.start({ ...request, jobId: 'nobody' });
  const error: unknown = await missing.result().catch((reason: unknown) => reason);
  console.log(error instanceof FollowUpError, error instanceof Error ? error.message : '');
  await followUps.close();
}
`;
const IMPORT = "import { FollowUpClient, FollowUpError } from 'agent-follow-up-client';";
const JAVASCRIPT = STORY.replaceAll(/ as const|: unknown/g, '');

/** Ways to use the package: a source file, and what runs. */
const CONSUMERS = [
  {
    name: 'CommonJS',
    source: 'commonjs.cjs',
    code: `const { FollowUpClient, FollowUpError } = require('agent-follow-up-client');${JAVASCRIPT}story();`,
    runs: 'commonjs.cjs',
  },
  { name: 'an ES module', source: 'esm.mjs', code: `${IMPORT}${JAVASCRIPT}await story();`, runs: 'esm.mjs' },
  ...[
    ['TypeScript as CommonJS, resolved as node16', 'node16.cts', 'void', 'node16/node16.cjs'],
    ['TypeScript as an ES module, resolved as node16', 'node16.mts', 'await', 'node16/node16.mjs'],
    ['TypeScript, resolved as bundlers do', 'bundler.mts', 'await', 'bundler/bundler.mjs'],
  ].map(([name = '', source = '', how = '', runs = '']) => {
    return { name, source, code: `${IMPORT}${STORY}${how} story();`, runs };
  }),
];

const strictly = ['--target', 'es2022', '--types', 'node', '--strict', '--skipLibCheck', 'false'];
const COMPILATIONS = [
  ['node16.cts', 'node16.mts', '--outDir', 'node16', '--module', 'node16'],
  ['bundler.mts', '--outDir', 'bundler', '--module', 'esnext', '--moduleResolution', 'bundler'],
];

/** What a service may have beside it. */
const NEIGHBOURS = ['zod@3.25.76', 'undici@6.23.0'];

beforeAll(async () => {
  ground = await Ground.open(folder);
  await ground.startWorker();
  await writeFile(path.join(folder, 'package.json'), '{ "name": "consumer", "private": true }');
  const compiler = ['typescript', '@types/node'] as const;
  const install = ['install', '--no-audit', '--no-fund', artifact('client')];
  const packages = compiler.map((name) => `${name}@${devDependencies[name]}`);
  await mustRun('npm', [...install, ...packages, ...NEIGHBOURS], inProject());
  for (const { source, code } of CONSUMERS) await writeFile(path.join(folder, source), code);
  for (const words of COMPILATIONS) await mustRun('npx', ['tsc', ...strictly, ...words], inProject());
});

afterAll(() => ground.close());

/** Removed when nothing runs in it any more. */
const folder = temporaryFolder();

describe('the client package', () => {
  it('installs one copy of each package of the SDK, of the version that is tested, and nothing native', async () => {
    const listed = await mustRun('npm', ['ls', '--all', '--parseable', '--long'], inProject());
    const copies = listed
      .split('\n')
      .map((line) => line.split(':')[1] ?? '')
      .filter((id) => id.startsWith('@temporalio/'));
    expect([...copies].sort()).toEqual([...new Set(copies)].sort());
    expect(copies).toContain(`@temporalio/client@${dependencies['@temporalio/client']}`);
    expect(copies.join()).not.toMatch(/core-bridge|worker|testing/);
    expect(await mustRun('find', ['node_modules', '-name', '*.node'], inProject())).toBe('');
  });

  it.each(CONSUMERS)('works from $name', async ({ runs }) => {
    const { projectId, jobId } = ground.sandbox.addJob({ turn: { reads: 2 } });
    const printed = await mustRun('node', [runs, projectId, jobId], inProject());
    const { prLink } = ground.sandbox.job({ projectId, jobId }).job;
    expect(printed.split('\n')).toEqual([
      `completed ${String(prLink)} false`,
      expect.stringMatching(/^true The service knows no such job/),
      '',
    ]);
  });

  it('runs the example of docs/testing.md with Jest, as it stands', async () => {
    const page = await readFile(path.join(ROOT, 'docs/testing.md'), 'utf8');
    const blockOf = (language: string) =>
      new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? '';
    await writeFile(path.join(folder, 'example.test.ts'), blockOf('ts'));
    const compiler = JSON.stringify(path.join(ROOT, 'node_modules/@swc/jest'));
    await writeFile(path.join(folder, 'jest.config.mjs'), blockOf('js').replace("'@swc/jest'", compiler));
    const globals = `@jest/globals@${devDependencies['@jest/globals']}`;
    await mustRun('npm', ['install', '--no-audit', '--no-fund', globals], inProject());
    const check = ['--module', 'node16', '--skipLibCheck', 'true', '--noEmit', 'example.test.ts'];
    await mustRun('npx', ['tsc', ...strictly, ...check], inProject());
    const { stderr } = await run('node', [path.join(ROOT, 'node_modules/.bin/jest')], inProject());
    expect(stderr).toContain('Tests:       4 passed, 4 total');
  });

  it('stands beside any zod and undici, as it needs neither', async () => {
    const copies = () => mustRun('npm', ['ls', 'zod', 'undici', '--parseable', '--long'], inProject());
    const only = (neighbours: string[]) => neighbours.map((each) => `:${each}`).sort();
    expect((await copies()).match(/:(zod|undici)@[\d.]+/g)?.sort()).toEqual(only(NEIGHBOURS));
    const newer = ['zod@3.25.76', 'undici@8.12.4'];
    await mustRun('npm', ['install', '--no-audit', '--no-fund', ...newer], inProject());
    expect((await copies()).match(/:(zod|undici)@[\d.]+/g)?.sort()).toEqual(only(newer));
  });
});
