import { Command, InvalidArgumentError } from 'commander';
import { checkLimits, ensureSearchAttributes, type Limits, type LimitsChange } from '../../entries/client';
import { workersPolling } from '../../temporal/sdk-internals';
import { numberOr } from '../flags/request-flags';
import { columns, table } from '../render/text';
import type { Session } from '../session';

export function setupCommand(session: Session): Command {
  return new Command('setup')
    .description(
      'Registers the search attributes in the namespace, and checks the connection. Safe to repeat. The key of the agent ' +
        "service is checked where it is: by a worker's `/readyz`.",
    )
    .option('--json', 'print one JSON document')
    .action(async () => {
      const { client, namespace, taskQueue } = await session.connect();
      const { serverVersion } = await client.workflowService.getSystemInfo({});
      const registered = await ensureSearchAttributes(client.connection, namespace);
      const workers = await workersPolling(client, taskQueue);
      const text = columns([
        ['server', `Temporal ${serverVersion}`],
        ['namespace', namespace],
        ['registered now', registered.join(', ') || 'none: all search attributes are there'],
        ['task queue', taskQueue],
        ['workers', workers.join(', ') || 'none poll the task queue yet; start a worker'],
      ]);
      session.print({ serverVersion, namespace, registered, taskQueue, workers }, text);
    });
}

const FAIRNESS_NOTE =
  'Limits per project and weights need fairness on the server (matching.enableFairness), which does not say whether it is ' +
  'on. Without it, a project at its limit holds up the others.';

export function limitsCommand(session: Session): Command {
  const client = async () => (await session.connect()).limits;
  const print = (now: Limits): void => {
    session.print(now, limitsTable(now));
  };
  const limits = new Command('limits').description(
    'Limits how often the agent service is asked, in total and by project. They hold for all workers at once. Whatever ' +
      'exceeds a limit waits in its task queue; nothing is lost or refused.',
  );
  const verb = (name: string, description: string): Command =>
    limits.command(name).description(description).option('--json', 'print one JSON document');
  verb('show', 'Shows the current limits and weights, and about how many tasks wait.').action(async () => {
    print(await (await client()).get());
  });
  verb(
    'set',
    'Sets or changes limits. A rate is a number per s, m, h or d, such as 90/h; off removes a limit. Limits that are not ' +
      "given stay as they are. A project's weight is its share where projects compete, and multiplies its own limits.",
  )
    .option('--sends-per-project <rate>', 'messages of each project')
    .option('--reads-per-project <rate>', 'reads of the jobs of each project')
    .option('--sends-total <rate>', 'messages of all projects together')
    .option('--reads-total <rate>', 'reads of all projects together')
    .option(
      '--project-weight <project=number>',
      'the weight of a project, 0.001 to 1000; may be given several times',
      addWeight,
    )
    .action(async ({ projectWeight: projectWeights, ...flags }: LimitFlags) => {
      const { sendsPerProject, readsPerProject, sendsTotal, readsTotal } = flags;
      const change = { sendsPerProject, readsPerProject, sendsTotal, readsTotal, projectWeights };
      // Before it connects.
      checkLimits(change);
      print(await (await client()).set(change));
      const fair = [sendsPerProject, readsPerProject, ...Object.values(projectWeights ?? {})];
      if (fair.some((value) => value !== undefined && value !== 'off')) session.note(FAIRNESS_NOTE);
    });
  verb('clear', 'Removes all limits and weights, whoever has set them.').action(async () => {
    print(await (await client()).clear());
  });
  return limits;
}

type LimitFlags = Omit<LimitsChange, 'projectWeights'> & {
  readonly projectWeight?: LimitsChange['projectWeights'];
};

function addWeight(text: string, before: object = {}): object {
  // A project id may hold an equals sign, a weight can't.
  const at = text.lastIndexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must be PROJECT=NUMBER, such as docs=3 or docs=off.');
  const id = text.slice(0, at);
  if (Object.hasOwn(before, id))
    throw new InvalidArgumentError(`"${id}" is given twice; give it one weight.`);
  return { ...before, [id]: numberOr(text.slice(at + 1)) };
}

export function limitsTable({ sends, reads }: Limits): string {
  const rows = Object.entries({ sends, reads }).map(([kind, queue]) => {
    const shares = Object.entries(queue.weights).map(([key, weight]) => `${key}=${weight}`);
    const rates = [queue.total ?? 'none', queue.perProject ?? 'none'];
    return [kind, queue.taskQueue, ...rates, String(queue.waiting), shares.join(' ') || 'none'];
  });
  return table(['REQUESTS', 'TASK QUEUE', 'TOTAL', 'PER PROJECT', 'WAITING', 'WEIGHTS'], rows);
}
