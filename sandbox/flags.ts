import { Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../src/core/units';
import { type FaultSetting, FaultSettingError, parseFault } from './fault-setting';
import { WHILE_ACTIVE, type WhileActive } from './job-life';

export interface Flags {
  readonly port: number;
  readonly host: string;
  readonly basePath: string;
  readonly turn: number;
  readonly seed: number;
  readonly messagesPerHour: number | null;
  readonly whileActive: WhileActive;
  readonly linkWhileActive: boolean;
  readonly acceptArchived: boolean;
  readonly fault: readonly FaultSetting[];
  readonly listFaults?: true | 'text' | 'markdown';
}

/**
 * Reads the program's flags; help and complaints go where commander sends them, to `writeErr` where that is given.
 *
 * @throws CommanderError for a flag that is unknown or wrong, and after `--help`, whose `exitCode` is 0.
 */
export function readFlags(args: readonly string[], writeErr?: (text: string) => void): Flags {
  const command = program();
  if (writeErr !== undefined) command.configureOutput({ writeErr });
  return command.parse(args, { from: 'user' }).opts<Flags>();
}

function program(): Command {
  return new Command('sandbox')
    .description(
      'An agent service that keeps the whole contract, with jobs in memory and faults on demand: for trying the worker out, for rehearsals and for tests.',
    )
    .option('--port <port>', 'where to listen; 0 for a free port', wholeNumber(0, 65_535), 4010)
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .addOption(
      new Option('--base-path <path>', 'a prefix of every path, such as /api')
        .argParser(readBasePath)
        .default('', 'none'),
    )
    .addOption(
      new Option('--turn <duration>', 'how long a turn of the agent takes, varied by a fifth')
        .argParser(readDuration)
        .default(4_000, '4s'),
    )
    .option('--seed <number>', 'of everything that is left to chance', wholeNumber(0, 2 ** 32 - 1), 1)
    .option('--messages-per-hour <number>', 'the limit per project, or off', readLimit, 100)
    .addOption(
      new Option('--while-active <what>', 'what a message does to a running turn')
        .choices(WHILE_ACTIVE)
        .default('interrupt'),
    )
    .option('--link-while-active', 'show the pull request of an earlier turn while a job is active', false)
    .option('--accept-archived', 'take messages to archived jobs', false)
    .addOption(
      new Option(
        '--fault <fault>',
        'switch a fault on: NAME[=VALUE][:key=value…][@project/job]; may be repeated',
      )
        .argParser(readFault)
        .default([], 'none'),
    )
    .addOption(
      new Option('--list-faults [format]', 'list the faults with their parameters, and end').choices([
        'text',
        'markdown',
      ]),
    )
    .addHelpText(
      'after',
      `
Environment: SANDBOX_API_KEY is used as the key that may write; without it a key is made at every start.

Examples:
  npm run sandbox -- --turn 20s
  npm run sandbox -- --fault processed-then-close:times=1@docs/job-1
  npm run sandbox -- --fault http-503:times=3:operation=get --fault stale=10s`,
    )
    .allowExcessArguments(false)
    .showHelpAfterError('(--help shows the flags)')
    .exitOverride();
}

function wholeNumber(minimum: number, maximum: number, alternative = ''): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${minimum} to ${maximum}${alternative}.`);
  };
}

function readLimit(text: string): number | null {
  return text === 'off' ? null : wholeNumber(1, 1_000_000, ', or off')(text);
}

function readDuration(text: string): number {
  const parsed = parseDuration(text);
  if ('problem' in parsed) throw new InvalidArgumentError(parsed.problem);
  return parsed.ms;
}

function readBasePath(text: string): string {
  const path = text.replace(/\/+$/, '');
  if (/^(\/[A-Za-z0-9._~-]+)*$/.test(path) && !/^\/sandbox(\/|$)/.test(path)) return path;
  throw new InvalidArgumentError(
    'It must be a path such as /api, and not /sandbox, where the control endpoints are.',
  );
}

function readFault(text: string, before: readonly FaultSetting[]): FaultSetting[] {
  try {
    return [...before, parseFault(text)];
  } catch (error) {
    if (error instanceof FaultSettingError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}
