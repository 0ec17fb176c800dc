import { describe, expect, it } from '@jest/globals';
import { PATIENT, ProcessEnvironment } from '../harness/process-environment';
import { RestartableServer, throughRestarts } from './restartable-server';

/** Two starts of a server on a file, one of a worker, and the back-off of everybody's gRPC; some 20 s on two cores. */
const LIMIT_MS = 180_000;

const ENDLESS = { turn: { durationMs: null } } as const;
const BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };

interface Scenario {
  readonly environment: ProcessEnvironment;
  readonly server: RestartableServer;
}

/** A server on a SQLite file, and a worker. */
async function onFile(env: NodeJS.ProcessEnv, test: (scenario: Scenario) => Promise<void>): Promise<void> {
  await RestartableServer.with((server) =>
    ProcessEnvironment.with({ address: server.address, env }, async (environment) => {
      await environment.startWorker();
      await test({ environment, server });
    }),
  );
}

describe('a Temporal server that is killed and comes back', () => {
  it.concurrent(
    'in the watch: the watch goes on, and the message is not sent again',
    () =>
      onFile({}, async ({ environment, server }) => {
        const following = await environment.follow(ENDLESS, PATIENT);
        const before = await following.progressWhen(({ polls }) => polls > 1);
        await server.kill();
        await server.restart();
        const { journal } = environment.sandbox;
        const seen = journal.entries({ operation: 'get' }).length;
        await journal.waitFor({ operation: 'get' }, { atLeast: seen + 2, timeoutMs: 60_000 });
        environment.sandbox.changeJob(following.key, {
          status: 'completed',
          prLink: 'https://code.test/pull/3',
        });
        const { prLink, followUp } = await throughRestarts(() => following.result());
        expect(prLink).toBe('https://code.test/pull/3');
        expect(followUp).toMatchObject({ delivery: BY_RESPONSE, evidence: 'seen-active' });
        expect(followUp.polls).toBeGreaterThan(before.polls);
        expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'while the POST is held and answered: the worker reports the answer later, and the message is not sent again',
    () =>
      // The server waits for 45 s for the report: longer than it is away.
      onFile({ AGENT_API_TIMEOUT: '30s' }, async ({ environment, server }) => {
        environment.sandbox.setFault({ name: 'hold', operation: 'message', times: 1 });
        const following = await environment.follow(ENDLESS, PATIENT);
        const { journal } = environment.sandbox;
        await journal.waitFor({ fault: 'hold' }, { timeoutMs: 30_000 });
        await server.kill();
        environment.sandbox.release();
        await journal.waitFor({ operation: 'message', ending: 'answered' });
        await server.restart();
        await journal.waitFor({ operation: 'get' }, { atLeast: 3, timeoutMs: 60_000 });
        environment.sandbox.changeJob(following.key, {
          status: 'completed',
          prLink: 'https://code.test/pull/4',
        });
        const { prLink, followUp } = await throughRestarts(() => following.result());
        expect(prLink).toBe('https://code.test/pull/4');
        expect(followUp).toMatchObject({ delivery: BY_RESPONSE, evidence: 'seen-active' });
        expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
      }),
    LIMIT_MS,
  );
});
