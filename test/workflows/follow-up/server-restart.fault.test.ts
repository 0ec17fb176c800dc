import { expect, it } from '@jest/globals';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { WORKER_LOSS_OPTIONS, ProcessEnvironment } from '../../harness/process-environment';
import { RestartableServer } from '../../harness/restartable-server';

// Proves T1.
it('if the Temporal server restarts during the POST and the watch, the worker reports the POST later; the watch and the caller continue, and the message is sent once', () =>
  RestartableServer.with((server) =>
    // With this HTTP timeout, the send times out after 75 s, which is longer than the Temporal server is unavailable.
    ProcessEnvironment.with(
      { address: server.address, env: { AGENT_API_TIMEOUT: '30s' } },
      async (environment) => {
        await environment.startWorker();
        const hold = { name: 'hold', operation: 'message', times: 1 } as const;
        const following = await environment.follow(ENDLESS_TURN, WORKER_LOSS_OPTIONS, hold);
        const result = environment.followUps.getHandle(following.handle.workflowId).result();
        await following.waitForRequest({ fault: 'hold' });
        const killedAt = Date.now();
        await server.kill();
        following.releaseHeldRequests();
        await following.waitForRequest({ operation: 'message', ending: 'answered' });
        await server.restart();
        const outageMs = Date.now() - killedAt;

        await following.waitForProgress(({ polls }) => polls > 1);
        await server.kill();
        await server.restart();
        const readsBefore = following.readCount();
        await following.waitForRequest({ operation: 'get' }, { atLeast: readsBefore + 2 });
        following.changeJob({ status: 'completed', prLink: 'https://code.test/pull/3' });
        const { prLink, receipt } = await result;
        expect(prLink).toBe('https://code.test/pull/3');
        // The SDK repeats a report for ten seconds. After a longer outage, a read shows the delivery.
        const delivery = outageMs < 5_000 ? ACCEPTED_BY_RESPONSE : { verdict: 'accepted', sends: 1 };
        expect(receipt).toMatchObject({ delivery, evidence: 'seen-active' });
        expect(receipt.polls).toBeGreaterThan(readsBefore - 1);
        expect(following.processedFlags()).toEqual([true]);
      },
    ),
  ));
