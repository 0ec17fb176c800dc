import { CommanderError } from 'commander';
import { banner } from './banner';
import { faultsAsMarkdown, listFaults } from './faults';
import { type Flags, readFlags } from './flags';
import { type Sandbox, startSandbox } from './sandbox';

/** As the starter's: 2 is for usage and invalid input, 1 for anything else. */
const EXIT_USAGE = 2;
const EXIT_FAILED = 1;

function print(line: string): void {
  process.stdout.write(line + '\n');
}

async function run(flags: Flags): Promise<void> {
  if (flags.listFaults !== undefined) {
    print(flags.listFaults === 'markdown' ? faultsAsMarkdown() : listFaults());
    return;
  }
  const key = process.env.SANDBOX_API_KEY;
  if (key !== undefined && /[^\x21-\x7e]/.test(key)) {
    throw new Error(
      'SANDBOX_API_KEY must consist of printable ASCII characters without spaces: it travels in a header',
    );
  }
  const given = key === undefined || key === '' ? [] : [{ key, access: 'write' as const }];
  const sandbox = await startSandbox({
    port: flags.port,
    host: flags.host,
    basePath: flags.basePath,
    turnMs: flags.turn,
    seed: flags.seed,
    messagesPerHour: flags.messagesPerHour,
    whileActive: flags.whileActive,
    linkWhileActive: flags.linkWhileActive,
    archivedJobs: flags.acceptArchived ? 'accept' : 'refuse',
    apiKeys: given,
    log: print,
  });
  for (const fault of flags.fault) sandbox.setFault(fault);
  print(banner(sandbox, given.length === 0));
  endOnSignal(sandbox);
}

/** Closing is all that keeps the process from its end. A reader of stdout who goes away is a signal, too. */
function endOnSignal(sandbox: Sandbox): void {
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    sandbox.close().catch(fail);
  };
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  process.stdout.on('error', end);
}

function fail(error: unknown): void {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = EXIT_FAILED;
}

/** The reasons why listening fails that a person can do something about. */
function explain(error: unknown, { port, host }: Flags): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const where = `port ${port} on ${host}`;
  if (code === 'EADDRINUSE')
    return new Error(`${where} is taken; choose another with --port, or --port 0 for a free one`);
  if (code === 'EACCES')
    return new Error(`${where} may not be used without more rights; choose one above 1023 with --port`);
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return new Error(`${host} is no address of this machine; correct --host`);
  return error;
}

function main(): void {
  let flags: Flags;
  try {
    flags = readFlags(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : EXIT_USAGE;
    return;
  }
  run(flags).catch((error: unknown) => {
    fail(explain(error, flags));
  });
}

main();
