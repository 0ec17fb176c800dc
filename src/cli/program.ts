import { Command, CommanderError, type OutputConfiguration } from 'commander';
import { batchCommand } from './commands/batch';
import { addFollowUpCommands } from './commands/follow-up';
import { limitsCommand, setupCommand } from './commands/namespace';
import { scheduleCommand } from './commands/schedule';
import { retryCommand, sendCommand } from './commands/send';
import { endOfError, EXIT, EXIT_CODES_HELP, printEnd } from './ends';
import { printableLines } from './render/text';
import { callName, type OutputStream, Session } from './session';

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
function createProgram(session: Session, version: string, streams: OutputConfiguration): Command {
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
  program.addCommand(sendCommand(session)).addCommand(retryCommand(session));
  addFollowUpCommands(program, session);
  program.addCommand(batchCommand(session)).addCommand(scheduleCommand(session));
  program.addCommand(limitsCommand(session)).addCommand(setupCommand(session));
  // Commander does not pass settings on to commands that are added.
  for (const [command, words] of allCommands(program)) {
    const help = `(${session.command(...words, '--help')} explains)`;
    const example = exampleOf(session, command, words);
    command.exitOverride().configureOutput(streams);
    command.showHelpAfterError([...example, help].join('\n'));
    // Its first sentence.
    command.summary(command.description().split('. ', 1).join().replace(/\.$/, ''));
    if (example.length > 0) command.addHelpText('after', `\n${example.join('\n')}`);
  }
  return program;
}

/** A command and its subcommands, each with the words that call it: `limits`, `limits set`. */
function allCommands(command: Command, words: readonly string[] = []): [Command, readonly string[]][] {
  const inner = command.commands.flatMap((each) => allCommands(each, [...words, each.name()]));
  return [[command, words], ...inner];
}

/** For commands that have no examples of their own, because their arguments say everything. */
const EXAMPLE_OF_ARGUMENT: Readonly<Record<string, string>> = {
  'workflow-id': 'follow-up:docs:job-1:order-4711',
  duration: '12h',
  decision: 'delivered',
  batch: 'nightly-07-31',
  concurrency: '200',
  id: 'nightly',
  '--from': '2026-11-21T00:00:00Z',
  '--to': '2026-11-22T00:00:00Z',
};

function exampleOf(session: Session, command: Command, words: readonly string[]): string[] {
  const needed = command.options.filter(({ mandatory }) => mandatory).map(({ long }) => long ?? '');
  const given = [
    ...command.registeredArguments.map((argument) => EXAMPLE_OF_ARGUMENT[argument.name()]),
    ...needed.flatMap((flag) => [flag, EXAMPLE_OF_ARGUMENT[flag]]),
  ].filter((word) => word !== undefined);
  if (given.length === 0 || given.length < command.registeredArguments.length) return [];
  return [`Example: ${session.command(...words, ...given)}`];
}

interface Invocation {
  readonly args: readonly string[];
  readonly env: Session['env'];
  readonly stdin: AsyncIterable<Uint8Array>;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** `process.argv[1]`: how the starter was called. */
  readonly scriptPath: string | undefined;
  /** Whether npm has a script for the starter, as it has not in the worker's artefact. @default true */
  readonly isCheckout?: boolean;
  readonly version: string;
}

/** Runs one command of the starter. @returns the exit code; it throws nothing */
export async function run(invocation: Invocation): Promise<number> {
  const { args, env, stdin, stdout, stderr, scriptPath, isCheckout = true, version } = invocation;
  const session = new Session(env, stdin, stdout, stderr, callName(scriptPath, isCheckout));
  const program = createProgram(session, version, {
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(printableLines(text)),
  });
  // A usage error comes before a command is known.
  session.isJson = args.includes('--json');
  program.hook('preAction', (_, command) => {
    session.isJson = command.opts<{ readonly json?: boolean }>().json === true;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return session.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      // Help and version were asked for. For anything else, commander has already printed the problem.
      if (error.exitCode === 0) return EXIT.completed;
      const message = error.message.replace(/^error: /, '');
      session.print({ type: 'Usage', message, details: null });
      return EXIT.usage;
    }
    printEnd(session, endOfError(error));
    if (env.DEBUG && error instanceof Error) session.note(error.stack ?? '');
    return session.exitCode;
  } finally {
    await session.close();
  }
}
