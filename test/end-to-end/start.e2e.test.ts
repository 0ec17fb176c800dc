import { symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { freePort } from '../../tools/lib/free-port';
import { stripTemporalEnv } from '../../tools/lib/dev-server';
import { mustRun, Program } from '../harness/program';
import { VARIABLES } from '../harness/temporal';
import { temporaryFolder } from '../harness/temporary-folder';
import { readPageCommands } from './deployments/page-commands';
import { artifactPath, ARTIFACTS } from './end-to-end-environment';

const cwd = temporaryFolder();
const programs: Program[] = [];
const bin = path.join(cwd, 'bin');
let env: NodeJS.ProcessEnv;

/** Runs a block of commands in a terminal of its own. `exec` replaces the shell, so that a signal reaches the last program. */
function openTerminal(commands: string, extraArguments: string, variables: NodeJS.ProcessEnv = {}): Program {
  const lines = commands.trimEnd().split('\n');
  const script = [...lines.slice(0, -1), `exec ${lines.at(-1) ?? ''} ${extraArguments}`].join('\n');
  const program = new Program('sh', ['-ec', script], { cwd, env: { ...env, ...variables } });
  programs.push(program);
  return program;
}

beforeAll(async () => {
  for (const name of ARTIFACTS)
    symlinkSync(artifactPath(name), path.join(cwd, path.basename(artifactPath(name))));
  const cli = process.env[VARIABLES.cli] ?? '';
  await mustRun('mkdir', [bin]);
  symlinkSync(cli, path.join(bin, 'temporal'));
  env = {
    ...stripTemporalEnv(process.env),
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    npm_config_prefix: cwd,
    npm_config_prefer_offline: 'true',
  };
});

afterAll(async () => {
  for (const program of programs.reverse()) program.signal('SIGTERM');
  await Promise.all(programs.map((program) => program.waitForEnd()));
});

it('the commands of docs/start.md start a Temporal server, the sandbox and a worker from the archives alone, and send a message; a second start sends nothing', async () => {
  const heading = 'Start the four programs in this order';
  const [server = '', sandbox = '', worker = '', caller = ''] = readPageCommands(
    'docs/start.md',
    heading,
    {},
  );
  const port = await freePort();
  openTerminal(server, `--headless --port ${port} --http-port ${await freePort()}`);
  const agentService = openTerminal(sandbox, '--port 0');
  const exports = await agentService.waitForOutput(
    /export AGENT_API_BASE_URL=(\S+)\n +export AGENT_API_KEY=(\S+)/,
  );
  const temporal = { TEMPORAL_ADDRESS: `127.0.0.1:${port}` };
  const started = openTerminal(worker, '', {
    ...temporal,
    AGENT_API_BASE_URL: exports[1],
    AGENT_API_KEY: exports[2],
    FOLLOW_UP_HEALTH_ADDRESS: 'off',
    FOLLOW_UP_METRICS_ADDRESS: 'off',
  });
  await started.waitForOutput(/"msg":"ready"/);
  // The start page suggests the same job as the sandbox's output.
  expect(agentService.stdout).toMatch(
    /agent-follow-up send --project docs --job job-1 .+ --max-staleness 2s\n/,
  );
  for (let start = 1; start <= 2; start += 1) {
    const output = await mustRun('sh', ['-ec', caller], { cwd, env: { ...env, ...temporal } });
    expect(output).toMatch(/^status +completed\nprLink +http\S+\/pull\/\d+$/m);
  }
  expect(agentService.stdout.match(/^POST \S+\/message 200/gm)).toHaveLength(1);
});
