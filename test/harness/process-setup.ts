import { mustRun } from './program';
import ensureSharedServer from './shared-server';
import { ROOT } from './worker-process';

/** Compiles the programs that the tests start, as `npm start` does, and makes sure of the shared server. Jest runs a file once. */
export default async function setUpProcesses(): Promise<void> {
  await Promise.all([mustRun('npm', ['run', 'build'], { cwd: ROOT }), ensureSharedServer()]);
}
