import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startDevServer, stripTemporalEnv } from '../../tools/lib/dev-server';
import getPort from 'get-port';
import { version } from '../../package.json';
import { startSandbox } from '../../sandbox';
import { VARIABLES } from '../harness/temporal';
import { ROOT, WorkerProcess } from '../harness/worker-process';

export const ARTIFACTS = ['client', 'plugin', 'sandbox', 'worker'] as const;
type Artifact = (typeof ARTIFACTS)[number];

export const NPM_INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund'] as const;
/** What a service may have beside the packages: other versions than theirs. */
export const CONFLICTING_DEPENDENCIES = ['zod@3.25.76', 'undici@6.23.0'] as const;
/** For a compiler that is told all of it. */
export const STRICT_COMPILER_FLAGS =
  '--ignoreConfig --target es2022 --types node --strict --skipLibCheck false'.split(' ');

/** The variable with the folder of the set-up. */
export const SETUP_FOLDER_VARIABLE = 'FOLLOW_UP_TEST_SETUP_FOLDER';
/** The same project, from the root of the repository and of that folder. */
export const EXAMPLE_PROJECT = 'examples/typescript';
const inSetupFolder = (...names: string[]) => path.join(process.env[SETUP_FOLDER_VARIABLE] ?? '', ...names);

export const artifactPath = (name: Artifact): string =>
  path.join(ROOT, `artifacts/agent-follow-up-${name}-${version}.tgz`);

/** A file of an artefact, unpacked. */
export const unpackedPath = (name: Artifact, file = '.'): string => inSetupFolder(name, 'package', file);

/** The folder of the project in which all packages are installed. */
export const exampleProjectFolder = (): string => inSetupFolder(EXAMPLE_PROJECT);

/** A folder in the project with all packages, with these files. It is CommonJS, as the project itself is not. */
export function createProjectFolder(name: string, files: Readonly<Record<string, string>>): string {
  const folder = path.join(exampleProjectFolder(), name);
  mkdirSync(folder);
  const all = { 'package.json': '{ "private": true }', ...files };
  for (const [file, text] of Object.entries(all)) writeFileSync(path.join(folder, file), text);
  return folder;
}

/** The code of a page in a language, as it stands there. */
export function readPageExamples(page: string, language = 'ts'): string[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8');
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'));
  return [...blocks].map(([, code = '']) => code);
}

export type EndToEndEnvironment = Awaited<ReturnType<typeof openEndToEndEnvironment>>;

/**
 * What stands behind a door in production: a Temporal server, an agent service, and the worker artefact in a folder that
 * nobody may write. The task queues are the default ones, as in the examples.
 */
export async function openEndToEndEnvironment() {
  const cli = process.env[VARIABLES.cli] ?? '';
  const httpPort = await getPort();
  // Longer than the first interval between polls, so that an example sees the job active.
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
  /** What a worker has beside it. */
  const workerEnv = { AGENT_API_BASE_URL: sandbox.baseUrl, AGENT_API_KEY: sandbox.apiKey };
  /** Starts the unpacked worker, as the user nobody where this process may choose, and waits until it works. */
  const startWorker = async (node = process.execPath): Promise<WorkerProcess> => {
    const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', '--no-new-privs'];
    // Whatever wants to write a file finds no place for it.
    const noPlace = { HOME: '/nonexistent', TMPDIR: unpackedPath('worker', 'dist') };
    const worker = await WorkerProcess.start(
      { TEMPORAL_ADDRESS: server.address, ...workerEnv, ...noPlace },
      unpackedPath('worker', 'dist/worker.js'),
      process.getuid?.() === 0 ? ['setpriv', ...nobody, node] : [node],
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
