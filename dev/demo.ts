import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { type Sandbox, startSandbox } from '../sandbox';
import { DemoWorker } from './demo-worker';
import { type DevServer, startDevServer } from './dev-server';
import { Interruption } from './interruption';
import { findTemporalCli } from './temporal-cli';
import { stripTemporalEnv } from './temporal-env';

const PROMPT = 'Please fix the broken links on the start page.';

interface DemoFlags {
  readonly once: boolean;
  readonly useServer: boolean;
}

/** Where the demo's programs find Temporal, and what must be ended with the demo. */
interface Ground {
  readonly env: NodeJS.ProcessEnv;
  readonly server: DevServer | null;
  readonly close: () => Promise<void>;
}

/** The whole house on one machine: a Temporal server, the sandbox agent service, a worker, and one follow-up. */
async function demo({ once: ends, useServer }: DemoFlags, interruption: Interruption): Promise<number> {
  const closing: (() => Promise<unknown>)[] = [];
  try {
    const ground = useServer ? configuredServer() : await ownServer();
    closing.unshift(ground.close);
    const sandbox = await startSandbox({ messagesPerHour: null });
    closing.unshift(() => sandbox.close());
    say(`the sandbox agent service listens at ${sandbox.baseUrl}`);
    const worker = await DemoWorker.start(ground.env, sandbox);
    closing.unshift(() => worker.stop());
    await Promise.race([worker.ready(), interruption.happened]);
    if (interruption.pending()) return INTERRUPTED;
    say(`the worker is ready; it logs to ${worker.logFile}`);

    const code = await sendFollowUp(ground.env, sandbox);
    if (ends || interruption.pending()) return code;
    lookAround(ground, sandbox);
    await Promise.race([interruption.happened, worker.exited]);
    return interruption.pending() ? code : 1;
  } finally {
    say('ending what the demo has started');
    for (const close of closing) await close();
  }
}

/** As a shell reports a program that Ctrl-C has ended. */
const INTERRUPTED = 130;

async function ownServer(): Promise<Ground> {
  const cli = await findTemporalCli({ env: process.env, say });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-demo-'));
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  try {
    const databaseFile = path.join(folder, 'temporal.db');
    const server = await startDevServer({ cli: cli.path, databaseFile, webUi: true });
    say(`the Temporal dev server listens at ${server.address}, its Web UI at ${server.uiUrl ?? ''}`);
    const env = {
      ...stripTemporalEnv(process.env),
      TEMPORAL_ADDRESS: server.address,
      TEMPORAL_NAMESPACE: server.namespace,
      TEMPORAL_UI_URL: server.uiUrl ?? '',
    };
    const close = async () => {
      await server.stop();
      await removeFolder();
    };
    return { env, server, close };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

/** The server of the environment and the profile. Queues of the demo's own keep other workers off its follow-up. */
function configuredServer(): Ground {
  const suffix = `demo-${process.pid}`;
  const env = {
    ...process.env,
    FOLLOW_UP_TASK_QUEUE: `follow-up-${suffix}`,
    AGENT_API_TASK_QUEUE: `agent-api-${suffix}`,
    AGENT_API_SEND_TASK_QUEUE: `agent-api-send-${suffix}`,
  };
  return { env, server: null, close: () => Promise.resolve() };
}

async function sendFollowUp(env: NodeJS.ProcessEnv, sandbox: Sandbox): Promise<number> {
  // Two polls see it active before the third finds it done.
  const job = sandbox.addJob({ projectId: 'docs', turn: { durationMs: 11_000 } });
  const words = ['send', '--project', 'docs', '--job', job.jobId, '--prompt', PROMPT];
  say(`npm run starter -- ${words.map((word) => (word.includes(' ') ? `'${word}'` : word)).join(' ')}`);
  const starter = path.resolve(__dirname, '../src/starter.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', starter, ...words], { env, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? INTERRUPTED;
}

function lookAround({ env, server }: Ground, sandbox: Sandbox): void {
  const queue =
    env.FOLLOW_UP_TASK_QUEUE === undefined ? [] : [`export FOLLOW_UP_TASK_QUEUE=${env.FOLLOW_UP_TASK_QUEUE}`];
  const address =
    server === null
      ? []
      : [`export TEMPORAL_ADDRESS=${server.address} TEMPORAL_UI_URL=${server.uiUrl ?? ''}`];
  const lines = [
    '',
    'Everything stays up until Ctrl-C. In another terminal:',
    '',
    ...[...address, ...queue].map((line) => `  ${line}`),
    '  npm run starter -- list',
    "  npm run starter -- send --project docs --job job-2 --prompt 'Add a table of contents.'",
    '  npm run starter -- --help',
    '',
    ...(server === null ? [] : [`Temporal's Web UI: ${server.uiUrl ?? ''}`]),
    `The sandbox's jobs:  ${sandbox.baseUrl}/sandbox/jobs`,
    '',
  ];
  process.stderr.write(`${lines.join('\n')}\n`);
}

function say(line: string): void {
  process.stderr.write(`[demo] ${line}\n`);
}

function readFlags(): DemoFlags {
  const program = new Command('npm run demo --')
    .description('Runs one follow-up from end to end on this machine, and stays up to look around.')
    .option(
      '--once',
      'end with the exit code of the follow-up; the default when CI=true',
      process.env.CI === 'true',
    )
    .option(
      '--use-server',
      'use the Temporal server of the environment or profile instead of one of its own',
      false,
    )
    .exitOverride()
    .parse();
  return program.opts<DemoFlags>();
}

function main(): void {
  let flags: DemoFlags;
  try {
    flags = readFlags();
  } catch (error) {
    // Commander has said what is wrong, or has shown its help.
    process.exitCode = (error as { exitCode?: number }).exitCode === 0 ? 0 : 2;
    return;
  }
  const interruption = new Interruption(() => {
    say('a second Ctrl-C: ending at once');
    process.exit(INTERRUPTED);
  });
  demo(flags, interruption).then(
    (code) => process.exit(code),
    (error: unknown) => {
      say(error instanceof Error ? error.message : String(error));
      process.exit(1);
    },
  );
}

main();
