import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { findTemporalCli } from '../../dev/temporal-cli';
import { VARIABLES } from '../harness/temporal';

/** Makes both artefacts, as an adopter does, and finds the Temporal CLI for the servers that the tests start. */
export default async function doorsSetUp(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`[test set-up] ${line}\n`);
  process.env[VARIABLES.cli] ??= (await findTemporalCli({ env: process.env, say })).path;
  await promisify(execFile)('npm', ['run', 'package'], { cwd: path.resolve(__dirname, '../..') });
}
