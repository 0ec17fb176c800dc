import { Command } from 'commander';
import { checkLimits, type Limits, type LimitsChange } from '../../client';
import { addLimitFlags, changeOfFlags, type LimitFlags } from '../limit-flags';
import { limitsTable } from '../limits-table';
import type { Session } from '../session';

interface JsonFlag {
  readonly json?: boolean;
}

/** The server has no word for whether it is on (measured, server 1.31). */
const FAIRNESS_NOTE =
  'Limits per project and weights need fairness on the server (matching.enableFairness), which does not tell whether it is ' +
  'on. Without it, a project at its limit holds up the others.';

export function limitsCommand(session: Session): Command {
  const limits = new Command('limits')
    .summary('how often the agent service is asked, in total and by project')
    .description(
      'Shows, sets and clears the limits of sends and reads. The Temporal server keeps them and holds all workers to them at ' +
        'once. What is over a limit waits in its task queue; nothing is lost or refused. Every attempt counts, so that each ' +
        'poll of a job is one read.',
    );
  limits.addCommand(
    new Command('show')
      .summary('the limits that hold, who set them, and what waits')
      .description(
        'Prints the limits that hold, when and by whom they were set, and about how many tasks wait.',
      )
      .option('--json', 'print one JSON document')
      .action((flags: JsonFlag) => show(session, flags)),
  );
  const set = new Command('set')
    .summary('set or change limits; the others stay as they are')
    .description(
      'Sets limits. A rate is a number per unit of time (s, m, h, d), such as 5/s or 90/h; off removes one. What is not ' +
        "given stays as it is. A project's weight is its share where projects compete, and a factor to its own limits.",
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
  print(session, await followUps.limits(), json);
}

async function setThem(session: Session, { json, ...flags }: LimitFlags & JsonFlag): Promise<void> {
  const change = changeOfFlags(flags);
  checkLimits(change);
  const followUps = await session.connect();
  print(session, await followUps.setLimits(change), json);
  if (needsFairness(change)) session.output.note(FAIRNESS_NOTE);
}

async function clear(session: Session, { json }: JsonFlag): Promise<void> {
  const followUps = await session.connect();
  print(session, await followUps.clearLimits(), json);
}

function print({ output }: Session, limits: Limits, json = false): void {
  if (json) output.json(limits);
  else output.result(limitsTable(limits));
}

function needsFairness({ sendsPerProject, readsPerProject, projectWeights = {} }: LimitsChange): boolean {
  const given = [sendsPerProject, readsPerProject, ...Object.values(projectWeights)];
  return given.some((value) => value !== undefined && value !== 'off');
}
