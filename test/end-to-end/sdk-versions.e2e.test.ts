import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startSandbox } from '../../sandbox';
import { startDevServer, stripTemporalEnv } from '../../tools/lib/dev-server';
import { devDependencies } from '../../package.json';
import { mustRun, Program } from '../harness/program';
import { VARIABLES } from '../harness/temporal';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';
import {
  artifactPath,
  NODE_VERSIONS,
  nodePath,
  NPM_INSTALL,
  STRICT_COMPILER_FLAGS,
} from './end-to-end-environment';
import { BUNDLE_PROGRAM, PROGRAM, RENAME_PRIVATE_PART, WORKFLOWS } from './sdk-versions/program';

const SDK_PACKAGES = ['activity', 'client', 'common', 'worker', 'workflow'];
const PACKAGE_MANAGERS = { pnpm: '10.34.9', yarn: '1.22.22' };

const folder = temporaryFolder();
const CACHE = path.join(ROOT, '.cache/e2e');
const managerPath = (name: string, file: string) =>
  path.join(folder, 'managers/node_modules', name, 'bin', file);

/** The arguments of a package manager that installs the dependencies of the project in the working directory. */
const INSTALL = {
  npm: () => ['npm', ...NPM_INSTALL],
  pnpm: () => [
    process.execPath,
    managerPath('pnpm', 'pnpm.cjs'),
    'install',
    '--store-dir',
    path.join(CACHE, 'pnpm'),
  ],
  yarn: () => [
    ...[process.execPath, managerPath('yarn', 'yarn.js'), 'install', '--ignore-scripts', '--no-progress'],
    ...['--prefer-offline', '--cache-folder', path.join(CACHE, 'yarn')],
  ],
};

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let server: Awaited<ReturnType<typeof startDevServer>>;
let runs = 0;

beforeAll(async () => {
  // No turn ends before the first poll has seen the job active.
  sandbox = await startSandbox({ seedJobs: false, turnMs: 300, messagesPerHour: null });
  server = await startDevServer({ cli: process.env[VARIABLES.cli] ?? '', searchAttributes: true });
  const cwd = path.join(folder, 'managers');
  await mkdir(cwd);
  const managers = Object.entries(PACKAGE_MANAGERS).map(([name, version]) => `${name}@${version}`);
  await mustRun('npm', [...NPM_INSTALL, '--prefix', cwd, ...managers], { cwd });
});

afterAll(async () => {
  await server.stop();
  await sandbox.close();
});

/** Installs the packages and a version of the SDK in a project, compiles the programs, and bundles the workflows. */
async function createProject(version: string, manager: keyof typeof INSTALL): Promise<string> {
  const cwd = path.join(folder, `sdk-${version}-${manager}`);
  await mkdir(cwd);
  const write = (file: string, text: string) => writeFile(path.join(cwd, file), text);
  const { typescript, '@types/node': types } = devDependencies;
  const dependencies = {
    ...Object.fromEntries(SDK_PACKAGES.map((name) => [`@temporalio/${name}`, version])),
    ...{ typescript, '@types/node': types },
    'agent-follow-up-client': `file:${artifactPath('client')}`,
    'agent-follow-up-plugin': `file:${artifactPath('plugin')}`,
  };
  await write(
    'package.json',
    JSON.stringify({ name: 'team', version: '1.0.0', private: true, dependencies }),
  );
  await write('workflows.cts', WORKFLOWS);
  await write('bundle.cts', BUNDLE_PROGRAM);
  await write('program.cts', PROGRAM);
  await write('program.mts', PROGRAM);
  const [command = '', ...args] = INSTALL[manager]();
  await mustRun(command, args, { cwd });
  const sources = ['workflows.cts', 'bundle.cts', 'program.cts', 'program.mts'];
  const compiler = path.join(cwd, 'node_modules/typescript/bin/tsc');
  const options = [...STRICT_COMPILER_FLAGS, '--module', 'node16', ...sources];
  await mustRun(process.execPath, [compiler, ...options], { cwd });
  await mustRun(process.execPath, ['bundle.cjs'], { cwd });
  return cwd;
}

/** Runs a program of a project with four jobs, of which the third is only in the memory of the program. */
async function runProgram(
  cwd: string,
  node: string,
  args: readonly string[],
  variables: NodeJS.ProcessEnv = {},
) {
  const projectId = `team-${++runs}`;
  const jobIds = Array.from({ length: 4 }, () => sandbox.addJob({ projectId }).jobId);
  const env = {
    ...stripTemporalEnv(process.env),
    ...{ TEMPORAL_ADDRESS: server.address, TASK_QUEUE: projectId },
    ...{ AGENT_API_BASE_URL: sandbox.baseUrl, AGENT_API_KEY: sandbox.apiKey },
    ...variables,
  };
  const { stdout, stderr } = await new Program(node, [...args, ...jobIds], { cwd, env }).waitForEnd();
  const links = jobIds.map((jobId) => sandbox.job({ projectId, jobId }).job.prLink);
  links[2] = 'https://git.example/pull/1';
  const expected = `agent_follow_up.FollowUpPlugin ${JSON.stringify(links)}\n`;
  expect({ args, stdout, stderr }).toEqual({ args, stdout: expected, stderr: expect.any(String) });
  expect(links).toEqual(links.map(() => expect.stringMatching(/^http/)));
  expect(sandbox.journal.entries({ projectId, operation: 'message' })).toHaveLength(3);
  return stderr.split('\n').filter((line) => line.includes('FOLLOW_UP_SDK_PART_MISSING'));
}

/** The registry's newest version. */
async function findNewestVersion(): Promise<string> {
  const printed = await mustRun('npm', ['view', '@temporalio/worker', 'dist-tags.latest'], { cwd: folder });
  return printed.trim();
}

type Manager = keyof typeof INSTALL;

/** Each version is installed with one package manager. With `SDK_COMBINATIONS=all`, each version is installed with each of them. */
const COMBINATIONS = (
  [
    ['1.20.3', 'npm', () => Promise.resolve('1.20.3')],
    ['1.22.0', 'pnpm', () => Promise.resolve('1.22.0')],
    ['1.23.0', 'yarn', () => Promise.resolve('1.23.0')],
    ['the newest version', 'npm', findNewestVersion],
  ] as const
).flatMap(([name, usual, findVersion]) => {
  const managers = process.env.SDK_COMBINATIONS === 'all' ? (Object.keys(INSTALL) as Manager[]) : [usual];
  return managers.map((manager) => [name, manager, findVersion] as const);
});

describe.each(COMBINATIONS)('next to the SDK %s, installed with %s', (_, manager, findVersion) => {
  let project: string;

  beforeAll(async () => {
    project = await createProject(await findVersion(), manager);
  });

  it.each(NODE_VERSIONS)(
    'the client and the plugin run follow-ups to their prLink with Node %s',
    async (node) => {
      const programs = ['program.cjs', 'program.mjs'];
      const runs = programs.map((program) => runProgram(project, nodePath(node), [program]));
      expect(await Promise.all(runs)).toEqual([[], []]);
    },
  );
});

describe('if the newest SDK lacks a private part', () => {
  let project: string;

  beforeAll(async () => {
    project = path.join(folder, `sdk-${await findNewestVersion()}-npm`);
    await writeFile(path.join(project, 'rename.cjs'), RENAME_PRIVATE_PART);
  });

  const CONNECT = /FollowUpClient\.connect\(\) therefore repeats no request/;
  const SHARED = /A FollowUpClient therefore uses the SDK's own retries on your Client's connection/;
  const TIMEOUT = /The SDK's default timeout for the code of a workflow task \(5 s\) is used/;

  it.each<[string, string, RegExp[]]>([
    ['Connection.generateRPCImplementation', 'generateRPCImplementation', [CONNECT, SHARED]],
    ['Connection.client', '(?<=this\\.)client\\b', [CONNECT, SHARED]],
    ['Connection.callContextStorage', 'callContextStorage', [CONNECT, SHARED]],
    ['Connection.apiKeyFnRef', 'apiKeyFnRef', [SHARED]],
    ['worker option isolateExecutionTimeout', 'isolateExecutionTimeout', [TIMEOUT]],
  ])(
    'without %s, one sentence states the effect, and follow-ups run to their prLink',
    async (part, pattern, effects) => {
      const args = ['--require', './rename.cjs', 'program.cjs'];
      const sentences = await runProgram(project, process.execPath, args, {
        PRIVATE_PART: pattern,
        PRIVATE_FILES: part.startsWith('Connection') ? 'client.lib.connection' : 'worker.lib..*',
      });
      expect(sentences).toHaveLength(effects.length);
      for (const sentence of sentences) expect(sentence).toContain(`The Temporal SDK has no ${part}.`);
      for (const effect of effects)
        expect(sentences.filter((sentence) => effect.test(sentence))).toHaveLength(1);
    },
  );
});
