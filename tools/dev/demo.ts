import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Command } from 'commander';
import { type Sandbox, startSandbox } from '../../sandbox';
import { type DemoWorker, startDemoWorker } from './demo-worker';
import { startDevServer, stripTemporalEnv } from '../lib/dev-server';
import { freePort } from '../lib/free-port';
import { findTemporalCli } from '../lib/temporal-cli';
import { INTERRUPTED_EXIT_CODE, interruption } from '../lib/interruption';

const PROMPT = 'Please fix the broken links on the start page.';

/** The variables with which the demo's programs find the Temporal server and each other. */
type Settings = Readonly<Record<string, string>>;

interface Flags {
  readonly once?: boolean;
  readonly useServer?: boolean;
  readonly trouble?: boolean;
}

/** The functions that stop everything that was started, in the order in which they are called. */
type Cleanups = (() => Promise<unknown>)[];

/** Runs the whole system on one machine: a Temporal server, the sandbox agent service, a worker, and one follow-up. */
async function demo({
  once: ends = process.env.CI === 'true',
  useServer = false,
  trouble,
}: Flags): Promise<number> {
  const interrupted = interruption();
  const closing: Cleanups = [];
  try {
    const settings = useServer ? demoQueueSettings() : await startOwnServer(closing);
    const env = { ...(useServer ? process.env : stripTemporalEnv(process.env)), ...settings };
    const sandbox = await startSandbox({ messagesPerHour: null });
    closing.unshift(() => sandbox.close());
    printStatus(`the sandbox agent service listens at ${sandbox.baseUrl}`);
    const startWorker = async (): Promise<DemoWorker> => {
      const worker = await startDemoWorker(env, sandbox);
      closing.unshift(() => worker.stop());
      await Promise.race([worker.ready(), interrupted.happened]);
      return worker;
    };
    let worker = await startWorker();
    if (interrupted.pending()) return INTERRUPTED_EXIT_CODE;
    printStatus(`the worker is ready; it logs to ${worker.logFile}`);

    const replaceWorker = async (): Promise<void> => {
      printStatus(`SIGKILL to the worker, process ${worker.pid}`);
      worker.kill();
      worker = await startWorker();
      printStatus(`another worker continues, process ${worker.pid}`);
    };
    const code = await (trouble === true
      ? sendWithLostResponse(env, sandbox, replaceWorker)
      : sendFollowUp(env, sandbox));
    if (ends || interrupted.pending()) return code;
    process.stderr.write(nextStepsText(settings, sandbox));
    await Promise.race([interrupted.happened, worker.exited]);
    return interrupted.pending() ? code : 1;
  } finally {
    printStatus('stopping everything that the demo has started');
    for (const close of closing) await close();
  }
}

async function startOwnServer(closing: Cleanups): Promise<Settings> {
  const cli = await findTemporalCli({ env: process.env, report: printStatus });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-demo-'));
  closing.unshift(() => rm(folder, { recursive: true, force: true }));
  const databaseFile = path.join(folder, 'temporal.db');
  const httpPort = await freePort();
  const server = await startDevServer({ cli: cli.path, databaseFile, webUi: true, httpPort });
  closing.unshift(() => server.stop());
  const { address, uiUrl } = server;
  printStatus(`the Temporal dev server listens at ${address}, its Web UI at ${uiUrl ?? ''}`);
  return {
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: 'default',
    TEMPORAL_UI_URL: uiUrl ?? '',
    // examples/shell/curl.sh uses this variable.
    TEMPORAL_HTTP_URL: `http://127.0.0.1:${httpPort}`,
  };
}

/** Returns separate task queues for a Temporal server of the user, so that other workers do not run the demo's follow-up. */
function demoQueueSettings(): Settings {
  const suffix = `demo-${process.pid}`;
  return {
    FOLLOW_UP_TASK_QUEUE: `follow-up-${suffix}`,
    AGENT_API_READ_TASK_QUEUE: `agent-api-read-${suffix}`,
    AGENT_API_SEND_TASK_QUEUE: `agent-api-send-${suffix}`,
  };
}

async function sendFollowUp(env: NodeJS.ProcessEnv, sandbox: Sandbox): Promise<number> {
  // Two polls return `active`, and the third poll returns the terminal status.
  const { jobId } = sandbox.addJob({ projectId: 'docs', turn: { durationMs: 11_000 } });
  // The sandbox's responses are never stale, and a turn starts immediately. The default of 30s is for an agent service whose delays
  // are not known.
  return send(env, ['--job', jobId, '--max-staleness', '2s']);
}

/**
 * The agent service processes the message, and the response to the POST is lost. Then the worker is killed, and another worker
 * continues. The message must have arrived once.
 */
async function sendWithLostResponse(
  env: NodeJS.ProcessEnv,
  sandbox: Sandbox,
  replaceWorker: () => Promise<void>,
): Promise<number> {
  // The turn ends after three reads, not after a time, so that a slow machine also reads the status `active`.
  const job = sandbox.addJob({ projectId: 'docs', turn: { reads: 3 } });
  sandbox.setFault({ name: 'processed-then-close', times: 1, jobId: job.jobId });
  printStatus(
    `fault: the agent service will process the message to ${job.jobId}, and close the connection without a response`,
  );
  let replaced: Promise<void> | undefined;
  // The delivery is unknown at first, because no response shows the message before `maxStaleness` is over.
  const flags = ['--job', job.jobId, '--max-staleness', '5s', '--polling-initial', '2s'];
  const code = await send(env, flags, async (progress) => {
    if (/ (reconciling|watching) /.test(progress)) await (replaced ??= replaceWorker());
  });
  await replaced;
  const messages = sandbox.journal.entries({ jobId: job.jobId, operation: 'message' });
  for (const { method, path: target, turn, ending } of messages) {
    printStatus(
      `the agent service's journal: ${method} ${target} · processed as turn ${String(turn)} · ${ending} without a response`,
    );
  }
  printStatus(`messages that the agent service received: ${messages.length}`);
  return replaced !== undefined && messages.length === 1 ? code : 1;
}

/** Sends a message with the CLI, and waits for its end. @param onProgress receives the progress; if it throws, the CLI is killed */
async function send(
  env: NodeJS.ProcessEnv,
  flags: string[],
  onProgress?: (progress: string) => Promise<void>,
): Promise<number> {
  const args = ['send', '--project', 'docs', ...flags, '--prompt', PROMPT];
  printStatus(
    `npm run starter -- ${args.map((word) => (word.includes(' ') ? `'${word}'` : word)).join(' ')}`,
  );
  const starter = path.resolve(__dirname, '../../src/starter.ts');
  const stdio = ['inherit', 'inherit', onProgress === undefined ? 'inherit' : 'pipe'] as const;
  const child = spawn(process.execPath, ['--import', 'tsx', starter, ...args], { env, stdio: [...stdio] });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    process.stderr.write(text);
    onProgress?.(text).catch((error: unknown) => {
      child.kill();
      child.emit('error', error);
    });
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return code ?? INTERRUPTED_EXIT_CODE;
}

function nextStepsText(settings: Settings, sandbox: Sandbox): string {
  const { TEMPORAL_UI_URL: uiUrl } = settings;
  return `
Everything stays up until Ctrl-C. In another terminal:

${Object.entries(settings)
  .map(([name, value]) => `  export ${name}=${value}\n`)
  .join('')}  npm run -s starter -- list
  npm run -s starter -- send --project docs --job job-2 --prompt 'Add a table of contents.' --max-staleness 2s
  npm run starter -- --help

${uiUrl === undefined ? '' : `Temporal's Web UI: ${uiUrl}\n`}The sandbox's jobs:  ${sandbox.baseUrl}/sandbox/jobs
`;
}

function printStatus(line: string): void {
  process.stderr.write(`[demo] ${line}\n`);
}

const flags = new Command('npm run demo --')
  .description(
    'Runs one follow-up from start to end on this machine, and then runs until Ctrl-C, so that you can explore it.',
  )
  .option('--once', 'exit with the exit code of the follow-up (default if CI=true)')
  .option(
    '--trouble',
    'lose the response to the message and kill the worker; the message still arrives only once',
  )
  .option('--use-server', 'use the Temporal server of the environment or profile')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<Flags>();
demo(flags).then(
  (code) => process.exit(code),
  (error: unknown) => {
    printStatus(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
