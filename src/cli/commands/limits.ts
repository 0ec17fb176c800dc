import { Command } from 'commander';
import type { Limits, LimitsChange, QueueLimits } from '../../client';
import { checkChange } from '../../client/limits';
import { formatDuration } from '../../core/units';
import { addLimitFlags, changeOfFlags, type LimitFlags } from '../flags/limit-flags';
import { table } from '../render/text';
import type { Session } from '../session';

interface JsonFlag {
  readonly json?: boolean;
}

/** The server's API does not say whether fairness is on (measured, server 1.31). */
const FAIRNESS_NOTE =
  'Limits per project and weights need fairness on the server (matching.enableFairness). The server does not say whether ' +
  'it is on. Without it, a project at its limit holds up the others.';

export function limitsCommand(session: Session): Command {
  const limits = new Command('limits')
    .summary('how often the agent service is asked, in total and by project')
    .description(
      'Shows, sets and clears the limits of sends and reads. The Temporal server keeps them, and they hold for all workers ' +
        'at once. Whatever exceeds a limit waits in its task queue; nothing is lost or refused. Every attempt counts, so ' +
        'each poll of a job is one read.',
    );
  limits.addCommand(
    new Command('show')
      .summary('the current limits, and what waits')
      .description('Prints the current limits and weights, and about how many tasks wait.')
      .option('--json', 'print one JSON document')
      .action((flags: JsonFlag) => show(session, flags)),
  );
  const set = new Command('set')
    .summary('set or change limits; the others stay as they are')
    .description(
      'Sets limits. A rate is a number per unit of time (s, m, h, d), such as 5/s or 90/h; off removes a limit. Limits ' +
        "that are not given stay as they are. A project's weight is its share where projects compete, and multiplies its " +
        'own limits.',
    );
  limits.addCommand(
    addLimitFlags(set)
      .option('--json', 'print one JSON document')
      .addHelpText(
        'after',
        `
Examples:
  $ ${session.command('limits', 'set', '--sends-per-project', '90/h', '--reads-total', '50/s')}
  $ ${session.command('limits', 'set', '--project-weight', 'docs=3', '--sends-per-project', 'off')}`,
      )
      .action((flags: LimitFlags & JsonFlag) => setThem(session, flags)),
  );
  limits.addCommand(
    new Command('clear')
      .summary('remove all limits and weights')
      .description('Removes all limits and weights of both task queues, whoever has set them.')
      .option('--json', 'print one JSON document')
      .action((flags: JsonFlag) => clear(session, flags)),
  );
  return limits;
}

async function show(session: Session, { json }: JsonFlag): Promise<void> {
  const followUps = await session.connect();
  print(session, await followUps.limits.get(), json);
}

async function setThem(session: Session, { json, ...flags }: LimitFlags & JsonFlag): Promise<void> {
  const change = changeOfFlags(flags);
  checkChange(change);
  const followUps = await session.connect();
  print(session, await followUps.limits.set(change), json);
  if (needsFairness(change)) session.output.note(FAIRNESS_NOTE);
}

async function clear(session: Session, { json }: JsonFlag): Promise<void> {
  const followUps = await session.connect();
  print(session, await followUps.limits.clear(), json);
}

function print({ output }: Session, limits: Limits, json = false): void {
  if (json) output.json(limits);
  else output.result(limitsTable(limits));
}

function needsFairness({ sendsPerProject, readsPerProject, projectWeights = {} }: LimitsChange): boolean {
  const given = [sendsPerProject, readsPerProject, ...Object.values(projectWeights)];
  return given.some((value) => value !== undefined && value !== 'off');
}

/** How many weights the table names; `--json` has all of them. */
const SHOWN_WEIGHTS = 5;

const HEADINGS = ['REQUESTS', 'TASK QUEUE', 'TOTAL', 'PER PROJECT', 'WEIGHTS', 'WAITING'];

/** The current limits, one line for each kind of request. */
export function limitsTable({ sends, reads }: Limits): string {
  return table(HEADINGS, [row('sends', sends), row('reads', reads)]);
}

function row(kind: string, limits: QueueLimits): string[] {
  const { taskQueue, total, perProject, weights } = limits;
  return [
    kind,
    taskQueue,
    total?.rate ?? 'none',
    perProject?.rate ?? 'none',
    weightsInWords(Object.entries(weights)),
    waitingInWords(limits),
  ];
}

function weightsInWords(weights: readonly (readonly [string, number])[]): string {
  if (weights.length === 0) return 'none';
  const shown = weights.slice(0, SHOWN_WEIGHTS).map(([key, weight]) => `${key}=${weight}`);
  const more = weights.length - shown.length;
  return shown.join(' ') + (more > 0 ? ` and ${more} more` : '');
}

function waitingInWords({ waiting, oldestMs }: QueueLimits): string {
  return waiting === 0 ? '0' : `${waiting}, oldest ${formatDuration(oldestMs)}`;
}
