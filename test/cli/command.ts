import { Readable } from 'node:stream';
import { run } from '../../src/cli/program';

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One command of the starter, in this process. What only a process has is in starter.process.test.ts. */
export async function command(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  { stdin = '', calledAs = 'npm run starter --' } = {},
): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  const code = await run({
    args,
    env,
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    calledAs,
    version: '0.0.0',
  });
  return { code, stdout, stderr };
}

/** The same where nothing listens: what it says, it says before it connects. */
export function offline(args: readonly string[], stdin = ''): Promise<Ended> {
  const env = { TEMPORAL_CONFIG_FILE: '/nowhere/temporal.toml', TEMPORAL_ADDRESS: '127.0.0.1:1' };
  return command(args, env, { stdin, calledAs: 'agent-follow-up' });
}
