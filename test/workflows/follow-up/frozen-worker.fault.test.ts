import { describe, expect, it } from '@jest/globals';
import { BY_READ, BY_RESPONSE, ENDLESS, UNKNOWN } from '../../harness/following';
import { Front } from '../../harness/front';
import { PATIENT, ProcessEnvironment } from '../../harness/process-environment';
import { onWorker, play, type Scenario, showsPhase, untilHeld } from '../../harness/scenario';

/*
 * The server gives the send up 19 to 27 s after its start, while the worker stands still; a second worker starts, decides
 * and ends; the first one wakes and works. It takes 40 to 60 s on two cores.
 */

function freeze({ worker, gate }: Scenario): void {
  worker.signal('SIGSTOP');
  gate.endPolls();
}

/** Another worker takes the place of the frozen one until the follow-up has ended. */
async function elsewhere<T>({ environment }: Scenario, end: () => Promise<T>): Promise<T> {
  const other = await environment.startWorker();
  const ended = await end();
  other.signal('SIGKILL');
  await other.exited;
  return ended;
}

async function expectUnknownElsewhere(scenario: Scenario): Promise<void> {
  const ending = await elsewhere(scenario, () => scenario.following.ending());
  expect(ending).toMatchObject({ type: 'DeliveryUnknown', delivery: UNKNOWN });
}

/** Wakes the worker, has it do a whole follow-up, so that what it had begun is done as well, and expects these POSTs. */
async function expectPostsOnceAwake(
  { environment, worker, following }: Scenario,
  processed: boolean[],
): Promise<void> {
  worker.signal('SIGCONT');
  const next = await environment.follow({}, PATIENT);
  expect((await next.result()).followUp.delivery).toEqual(BY_RESPONSE);
  expect(following.processed()).toEqual(processed);
}

describe('a worker that is frozen, and wakes after the follow-up has ended', () => {
  // Proves W4.
  it.concurrent('before it asks whether the send is wanted: only another one sends', () =>
    onWorker({ job: ENDLESS, hold: ['RecordActivityTaskHeartbeat', 'call'] }, async (scenario) => {
      await scenario.held.arrived();
      freeze(scenario);
      const { following } = scenario;
      const { followUp } = await elsewhere(scenario, async () => {
        await following.reached({ operation: 'message', ending: 'answered' });
        following.changeJob({ status: 'completed' });
        return following.result();
      });
      expect(followUp.delivery).toEqual(BY_RESPONSE);
      scenario.held.release();
      await expectPostsOnceAwake(scenario, [true]);
    }),
  );

  // Proves W4.
  it.concurrent('with the permission to send unread in its socket: it is too old, and nothing is sent', () =>
    onWorker({ job: ENDLESS, hold: ['RecordActivityTaskHeartbeat', 'answer'] }, async (scenario) => {
      await scenario.held.arrived();
      freeze(scenario);
      scenario.held.release();
      await expectUnknownElsewhere(scenario);
      await expectPostsOnceAwake(scenario, []);
    }),
  );

  // Proves W4.
  it.concurrent('while it connects for its POST, with the connection made meanwhile: it sends nothing', () =>
    ProcessEnvironment.with({}, async (environment) => {
      const front = await Front.open(Number(new URL(environment.sandbox.baseUrl).port));
      const env = {
        AGENT_API_BASE_URL: `http://127.0.0.1:${front.port}`,
        // Connecting gets a third of it: the moment in which the worker must be frozen.
        AGENT_API_TIMEOUT: '6s',
      };
      const hold = ['RecordActivityTaskHeartbeat', 'call'] as const;
      const test = async (scenario: Scenario) => {
        await scenario.held.arrived();
        await front.deafen();
        scenario.held.release();
        const localPort = await front.meets('connecting');
        freeze(scenario);
        front.hear();
        await front.meets('connected', localPort);
        await expectUnknownElsewhere(scenario);
        await expectPostsOnceAwake(scenario, []);
      };
      await play(environment, { job: ENDLESS, env, hold }, test).finally(() => front.close());
    }),
  );

  // Proves W5.
  it.concurrent('after its POST, which reading has found: its late report changes nothing', () =>
    onWorker({ job: ENDLESS, fault: { name: 'hold', operation: 'message', times: 1 } }, async (scenario) => {
      const { environment, following } = scenario;
      await untilHeld(scenario);
      freeze(scenario);
      environment.sandbox.release();
      const { followUp } = await elsewhere(scenario, async () => {
        // No query: it could meet the frozen worker.
        await showsPhase(following, 'watching');
        following.changeJob({ status: 'completed' });
        return following.result();
      });
      expect(followUp).toMatchObject({ delivery: BY_READ, evidence: 'seen-active' });
      await expectPostsOnceAwake(scenario, [true]);
    }),
  );
});
