import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import ensureSharedServer from './shared-server';

/** Compiles the programs that the tests start, as `npm start` does, and makes sure of the shared server. */
export default async function processSetup(): Promise<void> {
  await Promise.all([build(), ensureSharedServer()]);
}

async function build(): Promise<void> {
  const root = path.resolve(__dirname, '../..');
  try {
    await promisify(execFile)('npm', ['run', 'build'], { cwd: root });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`npm run build failed:\n${stdout}${stderr}`, { cause: error });
  }
}
