import { describe, expect, it } from '@jest/globals';
import { BY_RESPONSE, ENDLESS, type Following, type JobFault } from '../../harness/following';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';
import { RestartableServer, throughRestarts } from '../../harness/restartable-server';

/** A follow-up is watched on and ends right after `restart`, which kills the server and returns once it is back. */
async function expectWatchedOn(
  env: NodeJS.ProcessEnv,
  faults: readonly JobFault[],
  restart: (
    server: RestartableServer,
    following: Following,
    sandbox: ProcessEnvironment['sandbox'],
  ) => Promise<void>,
): Promise<void> {
  await RestartableServer.with((server) =>
    ProcessEnvironment.with({ address: server.address, env }, async (environment) => {
      await environment.startWorker();
      const following = await environment.follow(ENDLESS, PATIENT, ...faults);
      await restart(server, following, environment.sandbox);
      const seen = following.gets();
      await following.reached({ operation: 'get' }, { atLeast: seen + 2 });
      following.changeJob({ status: 'completed', prLink: 'https://code.test/pull/3' });
      const { prLink, followUp } = await throughRestarts(() => following.result());
      expect(prLink).toBe('https://code.test/pull/3');
      expect(followUp).toMatchObject({ delivery: BY_RESPONSE, evidence: 'seen-active' });
      expect(followUp.polls).toBeGreaterThan(seen - 1);
      expect(following.processed()).toEqual([true]);
    }),
  );
}

describe('a Temporal server that is killed and comes back', () => {
  // Proves T1.
  it.concurrent('in the watch: the watch goes on, and the message is not sent again', () =>
    expectWatchedOn({}, [], async (server, following) => {
      await following.progressWhen(({ polls }) => polls > 1);
      await server.kill();
      await server.restart();
    }),
  );

  // Proves T1.
  it.concurrent('while the POST is answered: the worker reports later, and nothing is sent again', () =>
    // The server waits for 45 s for the report: longer than it is away.
    expectWatchedOn(
      { AGENT_API_TIMEOUT: '30s' },
      [{ name: 'hold', operation: 'message', times: 1 }],
      async (server, following, sandbox) => {
        await following.reached({ fault: 'hold' });
        await server.kill();
        sandbox.release();
        await following.reached({ operation: 'message', ending: 'answered' });
        await server.restart();
      },
    ),
  );
});
