import { Command } from 'commander';
import { setUpNamespace } from '../../client/set-up';
import { columns } from '../render/text';
import type { Session } from '../session';
import { MAY_TAKE_EFFECT } from '../wait';

export function setupCommand(session: Session): Command {
  return new Command('setup')
    .description(
      'Registers the search attributes in the namespace, and checks the connection. The command can be repeated. It does not ' +
        "check the agent service's API key; the `/readyz` endpoint of a worker does.",
    )
    .option('--json', 'print one JSON document')
    .action(async () => {
      session.continuation = MAY_TAKE_EFFECT;
      const report = await setUpNamespace(await session.connect(), { signal: session.signal });
      const { serverVersion, namespace, registered, taskQueue, workers } = report;
      const text = columns([
        ['Temporal server', serverVersion ?? 'the Temporal server does not return its version'],
        ['namespace', namespace],
        ['registered now', registered.join(', ') || 'none; all search attributes exist'],
        ['task queue', taskQueue],
        ['workers', workersText(workers)],
      ]);
      session.print(report, text);
    });
}

function workersText(workers: readonly string[] | null): string {
  if (workers === null)
    return 'unknown, because the Temporal server does not return the workers of the task queue';
  return workers.join(', ') || 'no worker polls the task queue; start a worker';
}
