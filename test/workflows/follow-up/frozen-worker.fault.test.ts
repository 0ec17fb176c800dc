import { describe, expect, it } from '@jest/globals';
import { BY_READ, BY_RESPONSE, ENDLESS, UNKNOWN } from '../../harness/following';
import { PATIENT } from '../../harness/process-environment';
import { onWorker, type Scenario, showsPhase } from '../../harness/scenario';

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
  { environment, worker, following, held }: Scenario,
  processed: boolean[],
  end: () => Promise<unknown>,
): Promise<void> {
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
      const unknown = { type: 'DeliveryUnknown', delivery: UNKNOWN };
      await expectPosts(scenario, [], async () =>
        expect(await scenario.following.ending()).toMatchObject(unknown),
      );
    }),
  );

  // Proves W5.
  it.concurrent('after its POST, which reading has found: its late report changes nothing', () =>
    onWorker({ job: ENDLESS, fault: { name: 'hold', operation: 'message', times: 1 } }, async (scenario) => {
      const { following } = scenario;
      await following.reached({ fault: 'hold' });
      freeze(scenario);
      following.release();
      await expectPosts(scenario, [true], async () => {
        // No query: it could meet the frozen worker.
        await showsPhase(following, 'watching');
        following.changeJob({ status: 'completed' });
        expect((await following.result()).followUp).toMatchObject({ delivery: BY_READ });
      });
    }),
  );
});
