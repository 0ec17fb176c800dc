import { Command, CommanderError, type OutputConfiguration } from 'commander';
import { batchCommand } from './commands/batch';
import { addFollowUpCommands } from './commands/follow-up';
import { setupCommand } from './commands/setup';
import { scheduleCommand } from './commands/schedule';
import { addSendCommand } from './commands/send';
import { commandOutcomeFromError, EXIT_CODE, EXIT_CODES_HELP, printOutcome } from './command-outcome';
import { printableLines } from './render/text';
import { runUntilEarlyEnd, startTimeout } from './early-end';
import { parseTimeoutFlag } from './flags/request-flags';
import type { OutputStream } from './render/progress-line';
import { Session } from './session';

const ENVIRONMENT_HELP = `Environment:
  TEMPORAL_*, temporal.toml    the connection, as for the Temporal CLI and every SDK (default: localhost:7233)
  FOLLOW_UP_TASK_QUEUE, FOLLOW_UP_PLUGINS
                               must be the same as on the workers; only the workers need the agent service's API key
  TEMPORAL_UI_URL              the URL of the Web UI; send, retry WORKFLOW-ID, batch run and batch retry print the address
                               of the follow-up or batch
  DEBUG                        print the stack traces of errors`;

/** Every command has this option. */
const TIMEOUT = [
  '--timeout <duration>',
  'end the command after this time; follow-ups and batches continue (default: no timeout)',
  parseTimeoutFlag,
] as const;

/** Creates the program. Usage errors are thrown, so that `runCli` converts every error into an exit code. */
function createProgram(session: Session, version: string, streams: OutputConfiguration): Command {
  const program = new Command('agent-follow-up')
    .description(
      'Sends follow-up messages to agent jobs, and waits for the jobs. Workers do the work, so a follow-up continues when ' +
        'this program exits. A second send with the same --request-id attaches to the first one, and does not send the ' +
        'message again. Results go to stdout; progress and errors go to stderr.',
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
  // The loop is needed, because commander does not apply a program's settings to commands that are added with `addCommand`.
  for (const [command, words] of allCommands(program)) {
    if (command.commands.length === 0) command.option(...TIMEOUT);
    command.exitOverride().configureOutput(streams);
    command.showHelpAfterError(`(for usage, run ${session.command(...words, '--help')})`);
    // The list of commands shows the first sentence of each description.
    command.summary(command.description().split('. ', 1).join().replace(/\.$/, ''));
  }
  return program;
}

/** Returns each command with its words on the command line, for example `batch run`. */
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

/** Runs one command of the CLI. Never throws. @returns the exit code */
export async function runCli(invocation: Invocation): Promise<number> {
  const { args, env, stdin, stdout, stderr, commandPrefix, version } = invocation;
  const session = new Session(env, stdin, stdout, stderr, commandPrefix);
  const program = createProgram(session, version, {
    writeOut: (text) => stdout.write(text),
    writeErr: (text) => stderr.write(printableLines(text)),
  });
  // A usage error is reported before commander knows the command and its flags.
  session.isJson = args.includes('--json');
  program.hook('preAction', (_, command) => {
    const { json, timeout } = command.opts<{ readonly json?: boolean; readonly timeout?: number }>();
    session.isJson = json === true;
    if (timeout !== undefined) startTimeout(session, timeout);
  });
  try {
    await runUntilEarlyEnd(session, () => program.parseAsync(args, { from: 'user' }));
  } catch (error) {
    printError(session, error);
  } finally {
    await session.close();
  }
  return session.exitCode;
}

function printError(session: Session, error: unknown): void {
  if (!(error instanceof CommanderError)) {
    printOutcome(session, commandOutcomeFromError(error));
    if (session.env.DEBUG && error instanceof Error) session.printStatus(error.stack ?? '');
    return;
  }
  // If the exit code is 0, commander has printed the help or the version. Otherwise, commander has printed the error.
  if (error.exitCode === 0) return;
  session.exitCode = EXIT_CODE.usage;
  session.print({ type: 'Usage', message: error.message.replace(/^error: /, ''), details: null });
}
