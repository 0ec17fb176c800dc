import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Runtime } from '@temporalio/worker';
import { startDevServer } from '../../tools/lib/dev-server';
import { findTemporalCli } from '../../tools/lib/temporal-cli';
import { bundleCode } from '../../src/worker/bundle';
import { DYNAMIC_CONFIG, VARIABLES } from './temporal';

/** The setups and teardowns of all projects share this server, because Jest runs all of them in its main process. */
let shared: ReturnType<typeof start> | undefined;

/**
 * Starts the dev server of a test run, with search attributes and fairness, and builds the workflow bundle. Later calls have no
 * effect.
 */
export default async function ensureSharedServer(): Promise<void> {
  await (shared ??= start());
}

export async function stopSharedServer(): Promise<void> {
  if (shared === undefined) return;
  const { server, folder } = await shared;
  shared = undefined;
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

async function start() {
  // Without this, the SDK would handle these signals, and neither Jest nor the server would end.
  Runtime.install({ shutdownSignals: [] });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => void stopSharedServer().finally(() => process.exit(1)));
  const report = (line: string): void => void process.stderr.write(`[test setup] ${line}\n`);
  const cli = await findTemporalCli({ env: process.env, report });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-test-'));
  const bundlePath = path.join(folder, 'workflow-bundle.js');
  const [server] = await Promise.all([
    startDevServer({ cli: cli.path, searchAttributes: true, dynamicConfig: DYNAMIC_CONFIG }),
    bundleCode().then((code) => writeFile(bundlePath, code)),
  ]);
  process.env[VARIABLES.cli] = cli.path;
  process.env[VARIABLES.address] = server.address;
  process.env[VARIABLES.bundle] = bundlePath;
  return { server, folder };
}
