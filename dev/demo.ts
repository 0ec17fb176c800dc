import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { type Sandbox, startSandbox } from '../sandbox';
import { startDemoWorker } from './demo-worker';
import { startDevServer, stripTemporalEnv } from './dev-server';
import { freePorts } from './free-ports';
import { findTemporalCli } from './temporal-cli';
import { interruption } from './tether';

const PROMPT = 'Please fix the broken links on the start page.';

/** As a shell reports a program that Ctrl-C has ended. */
const INTERRUPTED = 130;

/** Variables with which the demo's programs find the server and each other. */
type Settings = Readonly<Record<string, string>>;

/** What ends what was started, in order. */
type Closing = (() => Promise<unknown>)[];

/** The whole house on one machine: a Temporal server, the sandbox agent service, a worker, and one follow-up. */
async function demo(ends: boolean, useServer: boolean): Promise<number> {
  const interrupted = interruption();
  const closing: Closing = [];
  try {
    const settings = useServer ? ownQueues() : await ownServer(closing);
    const env = { ...(useServer ? process.env : stripTemporalEnv(process.env)), ...settings };
    const sandbox = await startSandbox({ messagesPerHour: null });
    closing.unshift(() => sandbox.close());
    say(`the sandbox agent service listens at ${sandbox.baseUrl}`);
    const worker = await startDemoWorker(env, sandbox);
    closing.unshift(() => worker.stop());
    await Promise.race([worker.ready(), interrupted.happened]);
    if (interrupted.pending()) return INTERRUPTED;
    say(`the worker is ready; it logs to ${worker.logFile}`);

    const code = await sendFollowUp(env, sandbox);
    if (ends || interrupted.pending()) return code;
    process.stderr.write(waysToLookAround(settings, sandbox));
    await Promise.race([interrupted.happened, worker.exited]);
    return interrupted.pending() ? code : 1;
  } finally {
    say('ending what the demo has started');
    for (const close of closing) await close();
  }
}

async function ownServer(closing: Closing): Promise<Settings> {
  const cli = await findTemporalCli({ env: process.env, say });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-demo-'));
  closing.unshift(() => rm(folder, { recursive: true, force: true }));
  const databaseFile = path.join(folder, 'temporal.db');
  const [httpPort = 0] = await freePorts(1);
  const server = await startDevServer({ cli: cli.path, databaseFile, webUi: true, httpPort });
  closing.unshift(() => server.stop());
  const { address, namespace, uiUrl } = server;
  say(`the Temporal dev server listens at ${address}, its Web UI at ${uiUrl ?? ''}`);
  return {
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    TEMPORAL_UI_URL: uiUrl ?? '',
    // For examples/shell/curl.sh.
    TEMPORAL_HTTP_URL: `http://127.0.0.1:${httpPort}`,
  };
}

/** For the server of the environment and the profile: queues of the demo's own keep other workers off its follow-up. */
function ownQueues(): Settings {
  const suffix = `demo-${process.pid}`;
  return {
    FOLLOW_UP_TASK_QUEUE: `follow-up-${suffix}`,
    AGENT_API_TASK_QUEUE: `agent-api-${suffix}`,
    AGENT_API_SEND_TASK_QUEUE: `agent-api-send-${suffix}`,
  };
}

async function sendFollowUp(env: NodeJS.ProcessEnv, sandbox: Sandbox): Promise<number> {
  // Two polls see it active before the third finds it done.
  const job = sandbox.addJob({ projectId: 'docs', turn: { durationMs: 11_000 } });
  // The sandbox's reads don't lag, and it takes a message up at once; the default of 30s is for a service that is not known.
  const words = ['send', '--project', 'docs', '--job', job.jobId, '--prompt', PROMPT, '--confirm', '2s'];
  say(`npm run starter -- ${words.map((word) => (word.includes(' ') ? `'${word}'` : word)).join(' ')}`);
  const starter = path.resolve(__dirname, '../src/starter.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', starter, ...words], { env, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? INTERRUPTED;
}

function waysToLookAround(settings: Settings, sandbox: Sandbox): string {
  const { TEMPORAL_UI_URL: uiUrl } = settings;
  return `
Everything stays up until Ctrl-C. In another terminal:

${Object.entries(settings)
  .map(([name, value]) => `  export ${name}=${value}\n`)
  .join('')}  npm run starter -- list
  npm run starter -- send --project docs --job job-2 --prompt 'Add a table of contents.' --confirm 2s
  npm run starter -- --help

${uiUrl === undefined ? '' : `Temporal's Web UI: ${uiUrl}\n`}The sandbox's jobs:  ${sandbox.baseUrl}/sandbox/jobs
`;
}

function say(line: string): void {
  process.stderr.write(`[demo] ${line}\n`);
}

const flags = new Command('npm run demo --')
  .description('Runs one follow-up from end to end on this machine, and stays up to look around.')
  .option('--once', 'end with the exit code of the follow-up; the default when CI=true')
  .option('--use-server', 'use the Temporal server of the environment or profile')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ once?: true; useServer?: true }>();
demo(flags.once ?? process.env.CI === 'true', flags.useServer ?? false).then(
  (code) => process.exit(code),
  (error: unknown) => {
    say(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
