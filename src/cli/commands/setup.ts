import { Command } from 'commander';
import { ensureSearchAttributes } from '../../entries/client';
import { listPollingWorkers } from '../../temporal/sdk-internals';
import { columns } from '../render/text';
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
      const workers = await listPollingWorkers(client, taskQueue);
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
