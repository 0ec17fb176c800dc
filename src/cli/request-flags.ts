import { type Command, Option } from 'commander';
import { ON_UNKNOWN_DELIVERY, REQUEST_DEFAULTS, WHEN_ACTIVE } from '../contract/request';

/** The flags of `FollowUpRequest`, as commander names their values. Only what was given is there. */
export interface RequestFlags {
  readonly project?: string;
  readonly job?: string;
  readonly requestId?: string;
  readonly whenActive?: string;
  readonly onUnknownDelivery?: string;
  readonly deadline?: string;
  readonly reconcile?: string;
  readonly settle?: string;
  readonly confirm?: string;
  readonly pollingInitial?: string;
  readonly pollingGrowth?: string;
  readonly pollingMaximum?: string;
  readonly pollingJitter?: string;
  readonly pollingTimerPolls?: string;
}

/** Fields of the request, and the flag that sets each. */
const FLAG_OF_FIELD: Readonly<Record<string, string>> = {
  projectId: '--project',
  jobId: '--job',
  prompt: '--prompt',
  requestId: '--request-id',
  whenActive: '--when-active',
  onUnknownDelivery: '--on-unknown-delivery',
  deadline: '--deadline',
  reconcile: '--reconcile',
  settle: '--settle',
  confirm: '--confirm',
  'polling.initial': '--polling-initial',
  'polling.growth': '--polling-growth',
  'polling.maximum': '--polling-maximum',
  'polling.jitter': '--polling-jitter',
  'polling.timerPolls': '--polling-timer-polls',
};

/**
 * Adds the options of a follow-up to a command. Their values are checked by the request's own checker, which finds all
 * problems at once; commander would stop at the first.
 *
 * @param pollingInitial its default for this command
 */
export function addOptionFlags(
  command: Command,
  pollingInitial: string = REQUEST_DEFAULTS.polling.initial,
): Command {
  const { polling, ...defaults } = REQUEST_DEFAULTS;
  const flag = (flags: string, description: string, fallback: string | number): void => {
    command.addOption(new Option(flags, `${description} (default: ${fallback})`).helpGroup(OPTIONS_GROUP));
  };
  flag(
    '--when-active <what>',
    `if the job is not at rest before the send: ${WHEN_ACTIVE.join(', ')}`,
    defaults.whenActive,
  );
  flag(
    '--on-unknown-delivery <what>',
    `if nobody can tell whether the message arrived: ${ON_UNKNOWN_DELIVERY.join(', ')}`,
    defaults.onUnknownDelivery,
  );
  flag('--deadline <duration>', 'from the start to the end of the watch', defaults.deadline);
  flag(
    '--reconcile <duration>',
    'how long an unknown delivery is looked for by reading the job',
    defaults.reconcile,
  );
  flag('--settle <duration>', 'how long a completed job without prLink is re-read', defaults.settle);
  flag('--confirm <duration>', 'how long a status that nothing proves to be new must hold', defaults.confirm);
  flag('--polling-initial <duration>', 'shortest interval of polls', pollingInitial);
  flag('--polling-growth <number>', "next interval as a share of the turn's age, 0 to 10", polling.growth);
  flag('--polling-maximum <duration>', 'longest interval of polls', polling.maximum);
  flag('--polling-jitter <number>', 'share by which an interval varies, 0 to 0.5', polling.jitter);
  flag(
    '--polling-timer-polls <number>',
    'how many of the first polls are made by a timer each, or all',
    polling.timerPolls,
  );
  return command;
}

const OPTIONS_GROUP = 'Options of the follow-up (a duration is a number with a unit: 500ms, 30s, 10m, 24h):';

/** The request that the flags describe, unchecked. Fields that were not given stay out of it. */
export function requestOfFlags(
  flags: RequestFlags,
  prompt: string | undefined,
  requestId: string | undefined,
): Record<string, unknown> {
  const polling = present({
    initial: flags.pollingInitial,
    growth: numberOr(flags.pollingGrowth),
    maximum: flags.pollingMaximum,
    jitter: numberOr(flags.pollingJitter),
    timerPolls: numberOr(flags.pollingTimerPolls),
  });
  return present({
    projectId: flags.project,
    jobId: flags.job,
    prompt,
    requestId,
    whenActive: flags.whenActive,
    onUnknownDelivery: flags.onUnknownDelivery,
    deadline: flags.deadline,
    reconcile: flags.reconcile,
    settle: flags.settle,
    confirm: flags.confirm,
    polling: Object.keys(polling).length > 0 ? polling : undefined,
  });
}

/** A problem of the request's checker in the words of the command line. */
export function problemOfFlag(problem: string): string {
  const words = renameFields(problem, FLAG_OF_FIELD);
  return words === '--prompt: is missing' ? words + PROMPT_HELP : words;
}

/** A problem of the request's checker with other names for the fields; quoted values stay as they are. */
export function renameFields(problem: string, nameOf: Readonly<Record<string, string>>): string {
  const fields = Object.keys(nameOf).sort((one, other) => other.length - one.length);
  const leading = fields.find((field) => problem.startsWith(`${field}:`));
  if (leading === undefined) return problem;
  const name = nameOf[leading] ?? leading;
  if (problem.endsWith(', not absent')) return `${name}: is missing`;
  const rest = problem
    .slice(leading.length)
    .replace(
      /"(?:[^"\\]|\\.)*"|\bpolling\.\w+|\b(?:projectId|jobId|requestId|whenActive|onUnknownDelivery)\b/g,
      (word) => nameOf[word] ?? word,
    );
  return name + rest;
}

const PROMPT_HELP = '; give the message with --prompt TEXT or --prompt-file FILE (- for stdin)';

/** The number that a text is, or the text itself, so that the checker can show what is wrong with it. */
export function numberOr(text: string | undefined): number | string | undefined {
  return text !== undefined && /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) ? Number(text) : text;
}

function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
