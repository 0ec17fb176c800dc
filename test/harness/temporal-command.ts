import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { temporal } from './temporal';

/** Runs a command of the real Temporal CLI against the shared Temporal server, and returns its output. */
export async function temporalCommand(...args: string[]): Promise<string> {
  const { cli, env } = temporal();
  const { stdout } = await promisify(execFile)(cli, args, { env });
  return stdout;
}
