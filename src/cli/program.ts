import { Command, CommanderError, type OutputConfiguration } from 'commander';
import { batchCommand } from './commands/batch';
import { addFollowUpCommands } from './commands/follow-up';
import { setupCommand } from './commands/setup';
import { scheduleCommand } from './commands/schedule';
import { addSendCommand } from './commands/send';
import { commandOutcomeFromError, EXIT_CODE, EXIT_CODES_HELP, printOutcome } from './command-outcome';
import { printableLines } from './render/text';
import { type OutputStream, Session } from './session';

const ENVIRONMENT_HELP = `Environment:
  TEMPORAL_*, temporal.toml    the connection, as for the Temporal CLI and every SDK (default: localhost:7233)
  FOLLOW_UP_TASK_QUEUE, FOLLOW_UP_DATA_CONVERTER
                               the same values as for the workers; only the workers need the agent service's key
  TEMPORAL_UI_URL, DEBUG       to print the page of a follow-up in the Web UI; the stacks of errors`;

/** Usage errors throw, so that one place turns every error into an exit code. */
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

Exit codes:
${EXIT_CODES_HELP}

${ENVIRONMENT_HELP}`,
    );
  addSendCommand(program, session);
  addFollowUpCommands(program, session);
  program.addCommand(batchCommand(session)).addCommand(scheduleCommand(session));
  program.addCommand(setupCommand(session));
  // Commander does not pass settings on to commands that are added.
  for (const [command, words] of allCommands(program)) {
    command.exitOverride().configureOutput(streams);
    command.showHelpAfterError(`(${session.command(...words, '--help')} explains)`);
    // The summary is the first sentence of the description.
    command.summary(command.description().split('. ', 1).join().replace(/\.$/, ''));
  }
  return program;
}

/** Returns each command with the words that run it, such as `batch` and `batch run`. */
function allCommands(command: Command, words: readonly string[] = []): [Command, readonly string[]][] {
  const inner = command.commands.flatMap((each) => allCommands(each, [...words, each.name()]));
  return [[command, words], ...inner];
}

interface Invocation {
  readonly args: readonly string[];
  readonly env: Session['env'];
  readonly stdin: Session['stdin'];
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly commandPrefix: string;
  readonly version: string;
}

/** Runs one command of the starter. @returns the exit code; it throws nothing */
export async function runCli(invocation: Invocation): Promise<number> {
  const { args, env, stdin, stdout, stderr, commandPrefix, version } = invocation;
  const session = new Session(env, stdin, stdout, stderr, commandPrefix);
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
      // Help or version. Anything else commander has already printed.
      if (error.exitCode === 0) return EXIT_CODE.completed;
      const message = error.message.replace(/^error: /, '');
      session.print({ type: 'Usage', message, details: null });
      return EXIT_CODE.usage;
    }
    printOutcome(session, commandOutcomeFromError(error));
    if (env.DEBUG && error instanceof Error) session.printStatus(error.stack ?? '');
    return session.exitCode;
  } finally {
    await session.close();
  }
}
