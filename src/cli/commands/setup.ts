import { Command } from 'commander';
import { ensureSearchAttributes } from '../../client';
import { workersPolling } from '../../temporal/sdk-internals';
import { columns } from '../render/text';
import type { Session } from '../session';

const CALL_TIMEOUT_MS = 5_000;

export function setupCommand(session: Session): Command {
  return new Command('setup')
    .summary('prepare a namespace, and check the connection')
    .description(
      "Registers the search attributes of follow-ups in the namespace, and reports the server's version and " +
        'whether workers poll the task queue. Safe to repeat. The key of the agent service is checked where it is: ' +
        '`worker.js --check-key --project P --job J`.',
    )
    .option('--json', 'print one JSON document')
    .action((flags: { json?: boolean }) => setup(session, flags.json === true));
}

async function setup(session: Session, json: boolean): Promise<void> {
  const { client, namespace, taskQueue } = await session.connect();
  const { serverVersion } = await client.workflowService.getSystemInfo({});
  const attributes = await ensureSearchAttributes(client.connection, namespace);
  const workers = await workersPolling(client, taskQueue, CALL_TIMEOUT_MS);
  if (json) {
    session.output.json({ serverVersion, namespace, searchAttributes: attributes, taskQueue, workers });
    return;
  }
  const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '));
  session.output.result(
    columns([
      ['server', `Temporal ${serverVersion}`],
      ['namespace', namespace],
      ['registered now', list(attributes.registered)],
      ['there before', list(attributes.present)],
      ['task queue', taskQueue],
      ['workers', workers.length === 0 ? 'none poll the task queue yet; start a worker' : list(workers)],
    ]),
  );
}
