import { expect, it } from '@jest/globals';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { WORKER_LOSS_OPTIONS, ProcessEnvironment } from '../../harness/process-environment';
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
        const following = await environment.follow(ENDLESS_TURN, WORKER_LOSS_OPTIONS, hold);
        const result = environment.followUps.getHandle(following.handle.workflowId).result();
        await following.waitForRequest({ fault: 'hold' });
        await server.kill();
        following.releaseHeldRequests();
        await following.waitForRequest({ operation: 'message', ending: 'answered' });
        await server.restart();

        await following.waitForProgress(({ polls }) => polls > 1);
        await server.kill();
        await server.restart();
        const seen = following.readCount();
        await following.waitForRequest({ operation: 'get' }, { atLeast: seen + 2 });
        following.changeJob({ status: 'completed', prLink: 'https://code.test/pull/3' });
        const { prLink, receipt } = await result;
        expect(prLink).toBe('https://code.test/pull/3');
        expect(receipt).toMatchObject({ delivery: ACCEPTED_BY_RESPONSE, evidence: 'seen-active' });
        expect(receipt.polls).toBeGreaterThan(seen - 1);
        expect(following.processedFlags()).toEqual([true]);
      },
    ),
  ));
