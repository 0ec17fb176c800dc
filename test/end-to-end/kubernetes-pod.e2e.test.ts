import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { type NodeCommand, WorkerProcess } from '../harness/worker-process';
import { type EndToEndEnvironment, openEndToEndEnvironment, unpackedPath } from './end-to-end-environment';

let environment: EndToEndEnvironment;
const volume = temporaryFolder();
const stops: (() => Promise<void>)[] = [];

beforeEach(async () => {
  environment = await openEndToEndEnvironment();
  stops.push(() => environment.close());
  // The worker runs as another user, who must be able to read this folder.
  await mustRun('chmod', ['755', volume], { cwd: volume });
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/**
 * Writes the key as the kubelet updates the volume of a secret with the default mode: a new folder, a symlink to the folder that
 * replaces the old symlink, and then the removal of the old folder.
 */
async function writeSecretVolume(update: number, key: string): Promise<void> {
  const inVolume = (name: string) => path.join(volume, name);
  await mkdir(inVolume(`..${update}`), { mode: 0o755 });
  await writeFile(inVolume(`..${update}/key`), `${key}\n`, { mode: 0o644 });
  await symlink(`..${update}`, inVolume('..data_tmp'));
  await rename(inVolume('..data_tmp'), inVolume('..data'));
  if (update === 1) await symlink('..data/key', inVolume('key'));
  else await rm(inVolume(`..${update - 1}`), { recursive: true });
}

async function startWorker(): Promise<WorkerProcess> {
  // OpenShift runs pods with a user ID that no image knows and with the group root.
  const setUser = ['setpriv', '--reuid=1000680000', '--regid=0', '--clear-groups', '--no-new-privs'] as const;
  const node: NodeCommand = process.getuid?.() === 0 ? [...setUser, process.execPath] : [process.execPath];
  const worker = await WorkerProcess.start(
    {
      TEMPORAL_ADDRESS: environment.env.TEMPORAL_ADDRESS,
      AGENT_API_BASE_URL: environment.workerEnv.AGENT_API_BASE_URL,
      AGENT_API_KEY_FILE: path.join(volume, 'key'),
      // The container runtime sets this variable if the image does not know the user.
      HOME: '/',
      TEMPORAL_CONFIG_FILE: undefined,
    },
    unpackedPath('worker', 'dist/worker.js'),
    node,
  );
  stops.push(() => worker.stop());
  await worker.waitForLog(/^ready$/);
  return worker;
}

async function send(): Promise<string> {
  const { projectId, jobId } = environment.sandbox.addJob();
  const args = ['send', '--project', projectId, '--job', jobId, '--prompt', 'x', '--max-staleness', '2s'];
  const { env } = environment;
  return mustRun(process.execPath, [unpackedPath('worker', 'dist/starter.js'), ...args], { env });
}

it('a worker with a user ID of OpenShift reads the key from the volume of a secret, and uses a rotated key without a restart', async () => {
  await writeSecretVolume(1, environment.sandbox.createKey());
  const worker = await startWorker();
  expect(await worker.waitForReadyz(200)).toEqual([]);
  expect(await send()).toMatch(/^status +completed\nprLink +http\S+\/pull\//);

  environment.sandbox.expireKeys();
  await writeSecretVolume(2, environment.sandbox.createKey());
  expect(await send()).toMatch(/^status +completed\nprLink +http\S+\/pull\//);

  worker.signal('SIGTERM');
  expect(await worker.exited).toEqual({ code: 0, signal: null });
});
