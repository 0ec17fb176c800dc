import path from 'node:path';
import { mustRun } from './program';
import ensureSharedServer from './shared-server';

/** Compiles the programs that the tests start, as `npm start` does, and makes sure of the shared server. Jest runs a file once. */
export default async function setUpProcesses(): Promise<void> {
  const cwd = path.resolve(__dirname, '../..');
  await Promise.all([mustRun('npm', ['run', 'build'], { cwd }), ensureSharedServer()]);
}
