#!/usr/bin/env node
import { Command, InvalidArgumentError, Option } from 'commander';
import { type FaultSetting, listFaults, parseFault } from './active-faults';
import { parseWithSchema, duration, InputError } from './input';
import { type Sandbox, SEED_JOBS, startSandbox } from '.';

/** The commands that run this program and the CLI: with npm from source, and with their names if they are installed. */
const isSource = __filename.endsWith('.ts');
const CALL = isSource ? 'npm run sandbox --' : 'agent-follow-up-sandbox';
const STARTER = isSource ? 'npm run starter --' : 'agent-follow-up';

/** The exit codes, as in the CLI: 2 for invalid usage or input, and 1 for any other error. */
const EXIT_USAGE = 2;
const EXIT_FAILED = 1;

interface Flags {
  readonly port: number;
  readonly turn: number;
  readonly seed: number;
  /** The rate limit, or 0 for no limit. */
  readonly messagesPerHour: number;
  readonly fault: readonly FaultSetting[];
  readonly listFaults?: true;
}

function program(): Command {
  return new Command(CALL)
    .description(
      'A simulated agent service with the whole contract, jobs in memory and faults on request, for trials, rehearsals and tests.',
    )
    .option('--port <port>', 'port on 127.0.0.1; 0 chooses a free port', wholeNumber(65_535), 4010)
    .addOption(
      new Option('--turn <duration>', 'duration of a turn of the agent, varied by up to a fifth')
        .argParser((text) => parseOption(() => parseWithSchema(duration, text)))
        .default(4_000, '4s'),
    )
    .option('--seed <number>', 'seed of all random values', wholeNumber(2 ** 32 - 1), 1)
    .option(
      '--messages-per-hour <number>',
      'rate limit per project; 0 for no limit',
      wholeNumber(1_000_000),
      100,
    )
    .addOption(
      new Option('--fault <json>', 'switch a fault on; can be repeated')
        .argParser((text, before: readonly FaultSetting[]) => [
          ...before,
          parseOption(() => parseFault(text)),
        ])
        .default([], 'none'),
    )
    .option('--list-faults', 'list the faults with their parameters, and exit')
    .addHelpText(
      'after',
      `
Examples:
  ${CALL} --turn 20s
  ${CALL} --fault '{"name":"processed-then-close","times":1,"projectId":"docs","jobId":"job-1"}'
  ${CALL} --fault '{"name":"http-503","operation":"get","times":3}' --fault '{"name":"stale"}'`,
    )
    .allowExcessArguments(false)
    .showHelpAfterError('(for usage, run with --help)')
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EXIT_USAGE));
}

function wholeNumber(maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (value <= maximum) return value;
    throw new InvalidArgumentError(`The value must be a whole number from 0 to ${maximum}.`);
  };
}

/** Converts an InputError, so that commander reports the option and the problem. */
function parseOption<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof InputError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

async function run(flags: Flags): Promise<void> {
  if (flags.listFaults === true) {
    print(listFaults());
    return;
  }
  const { port, turn, seed, messagesPerHour } = flags;
  const sandbox = await startSandbox({
    port,
    seed,
    turnMs: turn,
    messagesPerHour: messagesPerHour === 0 ? null : messagesPerHour,
    log: print,
  });
  for (const fault of flags.fault) sandbox.setFault(fault);
  let isEnding = false;
  const end = (): void => {
    if (isEnding) return;
    isEnding = true;
    sandbox.close().catch(fail);
  };
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  // If the reader of stdout exits, the sandbox stops as after a signal.
  process.stdout.on('error', end);
  print(banner(sandbox, flags.fault));
}

/** Returns the text that the program prints at its start. The text has the key, because the key is valid only for this sandbox. */
function banner(sandbox: Sandbox, faults: readonly FaultSetting[]): string {
  const { baseUrl, apiKey } = sandbox;
  const rows = SEED_JOBS.map(({ projectId, id, story }) => {
    const { status, prLink } = sandbox.job({ projectId, jobId: id }).job;
    return [projectId, id, status, prLink ?? '-', story];
  });
  const table = [['PROJECT', 'JOB', 'STATUS', 'PULL REQUEST', 'EFFECT OF A MESSAGE'], ...rows];
  const width = (column: number): number => Math.max(...table.map((row) => row[column]?.length ?? 0));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(width(column)))
      .join('  ')
      .trimEnd(),
  );
  return `Sandbox agent service on ${baseUrl}

  ${lines.join('\n  ')}

The worker needs these two variables. The key is temporary and valid only for this sandbox, so it may be shown:

  export AGENT_API_BASE_URL=${baseUrl}
  export AGENT_API_KEY=${apiKey}

While a worker is running, send a message with the client or with the CLI${isSource ? '' : ' (package agent-follow-up-cli)'}:

  ${STARTER} send --project docs --job job-1 --prompt "Mention the new option in the guide." --max-staleness 2s

This sandbox returns the current state of a job in every read, unless a fault is on, so --max-staleness can be short. With the
default of 30s, the result of a short turn can come up to 60 s after the message.

Faults switched on: ${faults.map((fault) => JSON.stringify(fault)).join(', ') || 'none'} (--list-faults lists all)
HTTP API for jobs, faults and the journal: curl ${baseUrl}/sandbox
Ctrl-C stops the sandbox. Every request gets a line below.
`;
}

function print(line: string): void {
  process.stdout.write(line + '\n');
}

function fail(error: unknown): void {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = EXIT_FAILED;
}

/** Returns an error with the required action, if the user can fix why the sandbox can't listen. Otherwise, returns the same error. */
function explainListenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE')
    return new Error(`port ${port} is in use; choose another port with --port, or a free port with --port 0`);
  if (code === 'EACCES')
    return new Error(`this user may not use port ${port}; choose a port above 1023 with --port`);
  return error;
}

const flags = program().parse().opts<Flags>();
run(flags).catch((error: unknown) => {
  fail(explainListenError(error, flags.port));
});
