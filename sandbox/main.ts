#!/usr/bin/env node
import { Command, InvalidArgumentError, Option } from 'commander';
import { type FaultSetting, listFaults, parseFault } from './active-faults';
import { parseWithSchema, duration, InputError } from './input';
import { type Sandbox, SEED_JOBS, startSandbox } from '.';

/** How a person calls this program, and the starter: by npm from source, by their names from where they are installed. */
const isSource = __filename.endsWith('.ts');
const CALL = isSource ? 'npm run sandbox --' : 'agent-follow-up-sandbox';
const STARTER = isSource ? 'npm run starter --' : 'node dist/starter.js';

/** As the starter's: 2 is for usage and invalid input, 1 for anything else. */
const EXIT_USAGE = 2;
const EXIT_FAILED = 1;

interface Flags {
  readonly port: number;
  readonly turn: number;
  readonly seed: number;
  /** 0: no limit. */
  readonly messagesPerHour: number;
  readonly fault: readonly FaultSetting[];
  readonly listFaults?: true;
}

function program(): Command {
  return new Command(CALL)
    .description(
      'An agent service that keeps the whole contract, with jobs in memory and faults on demand: for trying the worker out, for rehearsals and for tests.',
    )
    .option('--port <port>', 'where to listen on 127.0.0.1; 0 for a free port', wholeNumber(65_535), 4010)
    .addOption(
      new Option('--turn <duration>', 'how long a turn of the agent takes, varied by a fifth')
        .argParser((text) => parseOption(() => parseWithSchema(duration, text)))
        .default(4_000, '4s'),
    )
    .option('--seed <number>', 'of everything that is left to chance', wholeNumber(2 ** 32 - 1), 1)
    .option('--messages-per-hour <number>', 'the limit per project; 0 for none', wholeNumber(1_000_000), 100)
    .addOption(
      new Option('--fault <json>', 'switches a fault on; may be repeated')
        .argParser((text, before: readonly FaultSetting[]) => [
          ...before,
          parseOption(() => parseFault(text)),
        ])
        .default([], 'none'),
    )
    .option('--list-faults', 'lists the faults with their parameters, and ends')
    .addHelpText(
      'after',
      `
Examples:
  ${CALL} --turn 20s
  ${CALL} --fault '{"name":"processed-then-close","times":1,"projectId":"docs","jobId":"job-1"}'
  ${CALL} --fault '{"name":"http-503","operation":"get","times":3}' --fault '{"name":"stale"}'`,
    )
    .allowExcessArguments(false)
    .showHelpAfterError('(--help shows the flags)')
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EXIT_USAGE));
}

function wholeNumber(maximum: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (value <= maximum) return value;
    throw new InvalidArgumentError(`It must be a whole number from 0 to ${maximum}.`);
  };
}

/** Lets commander name the flag with what is wrong with its value. */
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
  // A reader of stdout who goes away is a signal, too.
  process.stdout.on('error', end);
  print(banner(sandbox, flags.fault));
}

/** What the program prints at its start. It shows the key on purpose: it opens nothing but this sandbox. */
function banner(sandbox: Sandbox, faults: readonly FaultSetting[]): string {
  const { baseUrl, apiKey } = sandbox;
  const rows = SEED_JOBS.map(({ projectId, id, story }) => {
    const { status, prLink } = sandbox.job({ projectId, jobId: id }).job;
    return [projectId, id, status, prLink ?? '-', story];
  });
  const table = [['PROJECT', 'JOB', 'STATUS', 'PULL REQUEST', 'A MESSAGE TO IT'], ...rows];
  const width = (column: number): number => Math.max(...table.map((row) => row[column]?.length ?? 0));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(width(column)))
      .join('  ')
      .trimEnd(),
  );
  return `Sandbox agent service on ${baseUrl}

  ${lines.join('\n  ')}

The worker needs these two. The key is a throwaway of this sandbox and opens nothing else, so it may be shown:

  export AGENT_API_BASE_URL=${baseUrl}
  export AGENT_API_KEY=${apiKey}

With a worker running, send a message by the client, or by the starter${isSource ? '' : " in the worker's archive"}:

  ${STARTER} send --project docs --job job-1 --prompt "Mention the new option in the guide."

Faults switched on: ${faults.map((fault) => JSON.stringify(fault)).join(', ') || 'none'} (--list-faults shows all)
Jobs, faults and the journal by HTTP: curl ${baseUrl}/sandbox
Ctrl-C ends it. Every request gets a line below.
`;
}

function print(line: string): void {
  process.stdout.write(line + '\n');
}

function fail(error: unknown): void {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = EXIT_FAILED;
}

/** The reasons why listening fails that a person can do something about. */
function explainListenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE')
    return new Error(`port ${port} is taken; choose another with --port, or --port 0 for a free one`);
  if (code === 'EACCES')
    return new Error(`port ${port} may not be used without more rights; choose one above 1023 with --port`);
  return error;
}

const flags = program().parse().opts<Flags>();
run(flags).catch((error: unknown) => {
  fail(explainListenError(error, flags.port));
});
