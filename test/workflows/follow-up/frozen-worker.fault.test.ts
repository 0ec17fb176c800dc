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

/** Another worker takes the place of the frozen one until the follow-up has ended; then that one wakes, and has made these POSTs. */
async function expectPosts(
  scenario: Scenario,
  processed: boolean[],
  end: () => Promise<unknown>,
): Promise<void> {
  const { environment, worker, following, held } = scenario;
  const other = await environment.startWorker();
  await end();
  other.signal('SIGKILL');
  await other.exited;
  held.release();
  worker.signal('SIGCONT');
  // It does a whole follow-up, so that what it had begun is done as well.
  const next = await environment.follow({}, PATIENT);
  expect((await next.result()).followUp.delivery).toEqual(BY_RESPONSE);
  expect(following.processed()).toEqual(processed);
}

const expectUnknown = ({ following }: Scenario) =>
  expect(following.ending()).resolves.toMatchObject({ type: 'DeliveryUnknown', delivery: UNKNOWN });

describe('a worker that is frozen, and wakes after the follow-up has ended', () => {
  // Proves W4.
  it.concurrent('before it asks whether the send is wanted: only another one sends', () =>
    onWorker({ job: ENDLESS, hold: ['RecordActivityTaskHeartbeat', 'call'] }, async (scenario) => {
      const { following, held } = scenario;
      await held.arrived();
      freeze(scenario);
      await expectPosts(scenario, [true], async () => {
        await following.reached({ operation: 'message', ending: 'answered' });
        following.changeJob({ status: 'completed' });
        expect((await following.result()).followUp.delivery).toEqual(BY_RESPONSE);
      });
    }),
  );

  // Proves W4.
  it.concurrent('with the permission to send unread in its socket: it is too old, and nothing is sent', () =>
    onWorker({ job: ENDLESS, hold: ['RecordActivityTaskHeartbeat', 'answer'] }, async (scenario) => {
      await scenario.held.arrived();
      freeze(scenario);
      scenario.held.release();
      await expectPosts(scenario, [], () => expectUnknown(scenario));
    }),
  );

  // Proves W4.
  it.concurrent('while it connects for its POST, with the connection made meanwhile: it sends nothing', () =>
    ProcessEnvironment.with({}, async (environment) => {
      const front = await Front.open(Number(new URL(environment.sandbox.baseUrl).port));
      // Connecting gets a third of it: the moment in which the worker must be frozen.
      const env = { AGENT_API_BASE_URL: `http://127.0.0.1:${front.port}`, AGENT_API_TIMEOUT: '6s' };
      const hold = ['RecordActivityTaskHeartbeat', 'call'] as const;
      const test = async (scenario: Scenario) => {
        await scenario.held.arrived();
        await front.deafen();
        scenario.held.release();
        const localPort = await front.meets('connecting');
        freeze(scenario);
        front.hear();
        await front.meets('connected', localPort);
        await expectPosts(scenario, [], () => expectUnknown(scenario));
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
      await expectPosts(scenario, [true], async () => {
        // No query: it could meet the frozen worker.
        await showsPhase(following, 'watching');
        following.changeJob({ status: 'completed' });
        expect((await following.result()).followUp).toMatchObject({ delivery: BY_READ });
      });
    }),
  );
});
