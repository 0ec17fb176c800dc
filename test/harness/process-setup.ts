import { mustRun } from './program';
import ensureSharedServer from './shared-server';
import { ROOT } from './worker-process';

/**
 * Compiles the programs that the tests start, as `npm start` does, and ensures that the shared Temporal server runs. Several Jest
 * projects name this file, and Jest runs it once.
 */
export default async function setUpProcesses(): Promise<void> {
  await Promise.all([mustRun('npm', ['run', 'build'], { cwd: ROOT }), ensureSharedServer()]);
}
