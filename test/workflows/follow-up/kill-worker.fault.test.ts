import { describe, expect, it } from '@jest/globals';
import { BY_READ, BY_RESPONSE, ENDLESS, UNKNOWN } from '../../harness/following';
import { killAndReplace, onWorker, PROCESSED, showsPhase } from '../../harness/scenario';

/*
 * The send is given up 19 s after its start (2 s for each of its exchanges and 15 s), a workflow task of the dead worker 10 s
 * after its own; two workers start one after the other. It takes 15 to 50 s on two cores.
 */

describe('a worker that is killed', () => {
  const completed = { status: 'completed', evidence: 'seen-active', posts: [true] };

  // Proves W1, W2.
  it.concurrent.each([
    [
      'the POST not begun: another one reads it and sends, once',
      'call',
      { ...completed, delivery: BY_RESPONSE },
    ],
    [
      'the permission to send on its way: nobody can tell, and nothing is sent',
      'answer',
      { type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: [] },
    ],
  ] as const)('with the job read and %s', (_, what, ending) =>
    onWorker({ hold: ['RecordActivityTaskHeartbeat', what] }, async (scenario) => {
      await scenario.held.arrived();
      expect(scenario.following.gets()).toBe(1);
      await killAndReplace(scenario);
      expect(await scenario.following.ending()).toEqual(ending);
    }),
  );

  // Proves W2.
  it.concurrent('with its POST processed and unanswered: the running turn proves it', () =>
    onWorker({ job: ENDLESS, fault: PROCESSED }, async (scenario) => {
      const { following } = scenario;
      await following.reached({ fault: 'hold' });
      await killAndReplace(scenario);
      await showsPhase(following, 'watching');
      following.changeJob({ status: 'completed' });
      expect(await following.ending()).toEqual({ ...completed, delivery: BY_READ });
    }),
  );
});
