import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startDevServer, stripTemporalEnv } from '../../tools/lib/dev-server';
import { freePort } from '../../tools/lib/free-port';
import { version } from '../../package.json';
import { startSandbox } from '../../sandbox';
import { VARIABLES } from '../harness/temporal';
import { ROOT, WorkerProcess } from '../harness/worker-process';

export const ARTIFACTS = ['cli', 'client', 'plugin', 'sandbox', 'worker'] as const;
type Artifact = (typeof ARTIFACTS)[number];

export const NPM_INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund'] as const;
/** A service may have other versions of these dependencies than the packages. */
export const CONFLICTING_DEPENDENCIES = ['zod@3.25.76', 'undici@6.23.0'] as const;
/** Options for `tsc` without a configuration file. */
export const STRICT_COMPILER_FLAGS =
  '--ignoreConfig --target es2022 --types node --strict --skipLibCheck false'.split(' ');

/** The oldest supported version of Node, and a recent version of each later line that Node's developers support. */
export const NODE_VERSIONS = ['20.19.0', '22.23.5', '24.22.3', '26.12.1'] as const;

/** The environment variable with the folder that set-up.ts creates. */
export const SETUP_FOLDER_VARIABLE = 'FOLLOW_UP_TEST_SETUP_FOLDER';
/** The path of the TypeScript example, both in the repository and in the folder of set-up.ts. */
export const EXAMPLE_PROJECT = 'examples/typescript';
const inSetupFolder = (...names: string[]) => path.join(process.env[SETUP_FOLDER_VARIABLE] ?? '', ...names);

export const artifactPath = (name: Artifact): string =>
  path.join(ROOT, `artifacts/agent-follow-up-${name}-${version}.tgz`);

/** The path of a file in an unpacked artifact. */
export const unpackedPath = (name: Artifact, file = '.'): string => inSetupFolder(name, 'package', file);

/** The folder of the TypeScript example, in which all packages are installed. */
export const exampleProjectFolder = (): string => inSetupFolder(EXAMPLE_PROJECT);

/** Creates a CommonJS folder with these files in the project that has all packages. The project itself uses ES modules. */
export function createProjectFolder(name: string, files: Readonly<Record<string, string>>): string {
  const folder = path.join(exampleProjectFolder(), name);
  mkdirSync(folder);
  const all = { 'package.json': '{ "private": true }', ...files };
  for (const [file, text] of Object.entries(all)) writeFileSync(path.join(folder, file), text);
  return folder;
}

/** Returns the unchanged code blocks of a page in one language. */
export function readPageExamples(page: string, language = 'ts'): string[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8');
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'));
  return [...blocks].map(([, code = '']) => code);
}

/** The path of Node's executable, which set-up.ts installs. */
export const nodePath = (version: (typeof NODE_VERSIONS)[number]): string =>
  inSetupFolder(`nodes/node_modules/node-${version}/bin/node`);

export type EndToEndEnvironment = Awaited<ReturnType<typeof openEndToEndEnvironment>>;

/**
 * Starts the environment of a deployment: a Temporal server, the sandbox as the agent service, and, with `startWorker`, the worker
 * artifact in a read-only folder. The task queues have their default names, as in the examples.
 */
export async function openEndToEndEnvironment() {
  const cli = process.env[VARIABLES.cli] ?? '';
  const httpPort = await freePort();
  // A turn is longer than the first poll interval, so that an example sees the job active.
  const sandbox = await startSandbox({ seedJobs: false, turnMs: 6_000, messagesPerHour: null });
  const server = await startDevServer({ cli, httpPort, searchAttributes: true });
  const workers: WorkerProcess[] = [];
  /** The environment of a caller. */
  const env: NodeJS.ProcessEnv = {
    ...stripTemporalEnv(process.env),
    TEMPORAL_ADDRESS: server.address,
    TEMPORAL_HTTP_URL: `http://127.0.0.1:${httpPort}`,
    PATH: `${path.dirname(cli)}:${process.env.PATH ?? ''}`,
  };
  /** The variables that only a worker needs. */
  const workerEnv = { AGENT_API_BASE_URL: sandbox.baseUrl, AGENT_API_KEY: sandbox.apiKey };
  /** Starts the unpacked worker, and waits until the worker is ready. If this process runs as root, the worker runs as UID 65534. */
  const startWorker = async (
    node = process.execPath,
    variables: NodeJS.ProcessEnv = {},
  ): Promise<WorkerProcess> => {
    const unprivileged = ['--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs'];
    // The worker can write no file, because these folders are missing or read-only.
    const unwritable = { HOME: '/nonexistent', TMPDIR: unpackedPath('worker', 'dist') };
    const worker = await WorkerProcess.start(
      { TEMPORAL_ADDRESS: server.address, ...workerEnv, ...unwritable, ...variables },
      unpackedPath('worker', 'dist/worker.js'),
      process.getuid?.() === 0 ? ['setpriv', ...unprivileged, node] : [node],
    );
    workers.push(worker);
    await worker.waitForLog(/^ready$/);
    return worker;
  };
  const close = async (): Promise<void> => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await server.stop();
    await sandbox.close();
  };
  return { sandbox, env, workerEnv, startWorker, close };
}
