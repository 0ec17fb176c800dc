import { describe, expect, it } from '@jest/globals';
import { ENDLESS } from '../../harness/following';
import {
  ANSWERED,
  endAfterReading,
  FOUND_BY_READING,
  killAndReplace,
  NOBODY_KNOWS,
  onWorker,
  PROCESSED,
  untilHeld,
} from '../../harness/scenario';

/*
 * The send is given up 19 s after its start (2 s for each of its exchanges and 15 s), a workflow task of the dead worker 10 s
 * after its own; two workers start one after the other. It takes 15 to 50 s on two cores.
 */

describe('a worker that is killed', () => {
  // Proves W1, W2.
  it.concurrent.each([
    ['the POST not begun: another one reads it and sends, once', 'call', ANSWERED],
    [
      'the permission to send on its way: nobody can tell, and nothing is sent',
      'answer',
      { ...NOBODY_KNOWS, posts: [] },
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
      await untilHeld(scenario);
      await killAndReplace(scenario);
      expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
    }),
  );

  // Proves W2.
  it.concurrent('with its POST answered and not reported: the running turn proves it', () => {
    const fault = { ...PROCESSED, times: 1 };
    return onWorker(
      { job: ENDLESS, fault, hold: ['RespondActivityTaskCompleted', 'call'] },
      async (scenario) => {
        await untilHeld(scenario);
        scenario.environment.sandbox.release();
        await scenario.held.arrived();
        expect(scenario.following.posts()).toMatchObject([{ ending: 'answered', status: 200 }]);
        await killAndReplace(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      },
    );
  });
});
