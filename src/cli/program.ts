import { Command, CommanderError } from 'commander';
import { batchCommand } from './commands/batch';
import { listCommand, statusCommand, watchCommand } from './commands/follow-up';
import { limitsCommand } from './commands/limits';
import { cancelCommand, extendCommand, pollNowCommand, resolveCommand } from './commands/operate';
import { scheduleCommand } from './commands/schedule';
import { sendCommand } from './commands/send';
import { setupCommand } from './commands/setup';
import { EXIT, EXIT_CODES_HELP } from './exit-codes';
import { Output, type OutputStream } from './render/output';
import { printableLines } from './render/text';
import { callName, Session } from './session';
import { printError } from './errors';

/** The commands in the order of `--help`. */
const COMMANDS = [
  sendCommand,
  statusCommand,
  watchCommand,
  listCommand,
  pollNowCommand,
  extendCommand,
  resolveCommand,
  cancelCommand,
  batchCommand,
  scheduleCommand,
  limitsCommand,
  setupCommand,
];

const ENVIRONMENT_HELP = `Environment (only the worker needs the agent service's key):
  TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_*, TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE
                        the connection, as the Temporal CLI and every SDK read it (default: localhost:7233, default)
  FOLLOW_UP_TASK_QUEUE  where the workers poll (default: follow-up)
  AGENT_API_TASK_QUEUE, AGENT_API_SEND_TASK_QUEUE
                        where they poll for reads and sends, for limits (default: agent-api, agent-api-send)
  FOLLOW_UP_DATA_CONVERTER
                        a module that exports Temporal's DataConverter, the same as the workers' (default: none)
  TEMPORAL_UI_URL       base URL of Temporal's Web UI, to print the page of a follow-up
  DEBUG                 if set, errors are printed with their stack`;

/** The starter's command line. Usage errors throw, so that one place turns every error into an exit code. */
function createProgram(session: Session, version: string): Command {
  const program = new Command('agent-follow-up')
    .description(
      'Sends follow-up messages to agent jobs, each once, and waits for the jobs durably. ' +
        'Workers do the work: a follow-up continues when this program ends. Sending again with the same --request-id ' +
        'attaches to it. Results go to stdout, progress and errors to stderr.',
    )
    .version(version)
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText(
      'after',
      `
Examples:
  $ ${session.command('setup')}
  $ ${session.command('send', '--project', 'docs', '--job', 'job-1', '--prompt', 'Please fix the typo')}
  $ ${session.command('list', '--phase', 'watching')}
  $ ${session.command('batch', 'run', 'nightly.csv')}
  $ ${session.command('send', '--help')}

${EXIT_CODES_HELP}

${ENVIRONMENT_HELP}`,
    );
  for (const createCommand of COMMANDS) program.addCommand(createCommand(session));
  for (const command of allCommands(program)) {
    command.exitOverride().showHelpAfterError(`(${session.command(...path(command), '--help')} explains)`);
  }
  return program;
}

/** A command and its subcommands, such as `limits` and `limits set`: commander does not pass settings on to added commands. */
function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

/** The words that call a command, without the program's own name. */
function path(command: Command): string[] {
  return command.parent === null ? [] : [...path(command.parent), command.name()];
}

interface Invocation {
  /** The words after the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** `process.argv[1]`: how the starter was called. */
  readonly scriptPath: string | undefined;
  /** Whether npm has a script for the starter. @default true */
  readonly isCheckout?: boolean;
  readonly version: string;
}

/** Runs one command of the starter. @returns the exit code; it throws nothing */
export async function run(invocation: Invocation): Promise<number> {
  const { args, env, stdin, stdout, stderr, scriptPath, version } = invocation;
  const output = new Output(stdout, stderr);
  const session = new Session(output, stdin, env, callName(scriptPath, invocation.isCheckout ?? true));
  const program = createProgram(session, version);
  for (const command of allCommands(program)) {
    command.configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(printableLines(text)),
    });
  }
  try {
    if (args.length === 0) {
      program.outputHelp({ error: true });
      return EXIT.usage;
    }
    await program.parseAsync(args, { from: 'user' });
    return session.exitCode;
  } catch (error) {
    const json = args.includes('--json');
    if (error instanceof CommanderError) {
      // Help and version were asked for. For anything else, commander has already printed the problem.
      if (error.exitCode === 0) return EXIT.completed;
      if (json) output.json({ type: 'Usage', message: error.message, details: null });
      return EXIT.usage;
    }
    return printError(output, error, json, Boolean(env.DEBUG));
  } finally {
    await session.close();
  }
}
