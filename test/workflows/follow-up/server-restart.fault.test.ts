import { expect, it } from '@jest/globals';
import { BY_RESPONSE, ENDLESS } from '../../harness/following';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';
import { RestartableServer } from '../../harness/restartable-server';

// Proves T1.
it('a Temporal server is killed and comes back while the POST is answered, and in the watch: the worker reports later, watch and caller go on, and nothing is sent again', () =>
  RestartableServer.with((server) =>
    // The server waits for 45 s for the report: longer than it is away.
    ProcessEnvironment.with(
      { address: server.address, env: { AGENT_API_TIMEOUT: '30s' } },
      async (environment) => {
        await environment.startWorker();
        const hold = { name: 'hold', operation: 'message', times: 1 } as const;
        const following = await environment.follow(ENDLESS, PATIENT, hold);
        const result = environment.followUps.getHandle(following.handle.workflowId).result();
        await following.reached({ fault: 'hold' });
        await server.kill();
        following.release();
        await following.reached({ operation: 'message', ending: 'answered' });
        await server.restart();

        await following.progressWhen(({ polls }) => polls > 1);
        await server.kill();
        await server.restart();
        const seen = following.gets();
        await following.reached({ operation: 'get' }, { atLeast: seen + 2 });
        following.changeJob({ status: 'completed', prLink: 'https://code.test/pull/3' });
        const { prLink, receipt } = await result;
        expect(prLink).toBe('https://code.test/pull/3');
        expect(receipt).toMatchObject({ delivery: BY_RESPONSE, evidence: 'seen-active' });
        expect(receipt.polls).toBeGreaterThan(seen - 1);
        expect(following.processed()).toEqual([true]);
      },
    ),
  ));
