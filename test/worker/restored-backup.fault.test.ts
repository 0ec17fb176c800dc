import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from '@jest/globals';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { ProcessEnvironment } from '../harness/process-environment';
import { mustRun } from '../harness/program';
import { RestartableServer } from '../harness/restartable-server';
import { waitForPhase } from '../harness/scenario';
import { temporal } from '../harness/temporal';

/** Returns the filters of the page's commands that terminate workflows after a restore. The page has one. */
function terminateQueries(): string[] {
  const page = readFileSync(path.join(__dirname, '../../docs/temporal-server.md'), 'utf8');
  return [...page.matchAll(/temporal workflow terminate .*--query '([^']+)'/g)].map(
    ([, query = '']) => query,
  );
}

// Proves T8.
it('if an operator follows the documented procedure after a restored backup, no message is sent again, and watches continue', async () => {
  const [query = '', ...others] = terminateQueries();
  expect(others).toEqual([]);
  await RestartableServer.with(async (server) => {
    await ProcessEnvironment.with({ address: server.address }, async (environment) => {
      const first = await environment.startWorker();
      const watching = await environment.follow(ENDLESS_TURN);
      const sending = await environment.follow({ ...ENDLESS_TURN, status: 'active' }, { whenActive: 'wait' });
      const delayed = await environment.followUps.start(environment.newRequest(), { startDelay: '1h' });
      await waitForPhase(watching, 'watching');
      await waitForPhase(sending, 'waiting-for-job');
      await server.backUp();

      // The Temporal server loses the start of this send and its report.
      sending.changeJob({ status: 'completed' });
      await sending.waitForRequest({ operation: 'message' });
      await first.stop();
      await server.restoreBackup();

      // The procedure of docs/temporal-server.md.
      const run = (...args: string[]) =>
        mustRun(temporal().cli, [...args, '--address', server.address], { env: temporal().env });
      const listedIds = async () => {
        const list = JSON.parse(await run('workflow', 'list', '--query', query, '--output', 'json')) as {
          execution: { workflowId: string };
        }[];
        return list.map(({ execution: { workflowId } }) => workflowId).sort();
      };
      // Visibility may have stored the changes before the backup later.
      const expected = [sending.handle.workflowId, delayed.workflowId].sort();
      await eventually('exactly the follow-ups that may send are listed', async () =>
        isDeepStrictEqual(await listedIds(), expected),
      );
      await run('workflow', 'terminate', '--yes', '--reason', 'restored backup', '--query', query);
      await eventually('no follow-up that may send is open', async () => (await listedIds()).length === 0);
      await environment.startWorker();
      watching.changeJob({ status: 'completed' });
      expect((await watching.result()).status).toBe('completed');
      expect([watching.posts().length, sending.posts().length]).toEqual([1, 1]);
    });
  });
});
