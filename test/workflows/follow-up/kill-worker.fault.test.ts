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
  type Scenario,
  type ScenarioOptions,
  untilHeld,
} from '../../harness/scenario';

/*
 * The send is given up 19 s after its start (2 s for each of its exchanges and 15 s), a workflow task of the dead worker 10 s
 * after its own; two workers start one after the other. It takes 15 to 50 s on two cores.
 */

/** Kills the worker at a point, and expects how the follow-up ends on another worker. */
function expectAfterKill(
  options: ScenarioOptions,
  point: (scenario: Scenario) => Promise<unknown>,
  ending: object,
): Promise<void> {
  return onWorker(options, async (scenario) => {
    await point(scenario);
    await killAndReplace(scenario);
    expect(await scenario.following.ending()).toEqual(ending);
  });
}

describe('a worker that is killed', () => {
  // Proves W1.
  it.concurrent('with the job read and the POST not begun: another one reads it and sends, once', () => {
    const looked = async ({ following, held }: Scenario) => {
      await held.arrived();
      expect(await following.reached({ operation: 'get', ending: 'answered' })).toHaveLength(1);
    };
    return expectAfterKill({ hold: ['RecordActivityTaskHeartbeat', 'call'] }, looked, ANSWERED);
  });

  // Proves W2.
  it.concurrent('with the permission to send on its way: nobody can tell, and nothing is sent', () =>
    expectAfterKill({ hold: ['RecordActivityTaskHeartbeat', 'answer'] }, ({ held }) => held.arrived(), {
      ...NOBODY_KNOWS,
      posts: [],
    }),
  );

  // Proves W2.
  it.concurrent(
    'with its POST processed and unanswered: the running turn proves it, and the message is not sent twice',
    () =>
      onWorker({ job: ENDLESS, fault: PROCESSED }, async (scenario) => {
        await untilHeld(scenario);
        await killAndReplace(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      }),
  );

  // Proves W2.
  it.concurrent(
    'with its POST answered but not reported: the turn proves it, and it is not sent twice',
    () => {
      const fault = { ...PROCESSED, times: 1 };
      const hold = ['RespondActivityTaskCompleted', 'call'] as const;
      return onWorker({ job: ENDLESS, fault, hold }, async (scenario) => {
        await untilHeld(scenario);
        scenario.environment.sandbox.release();
        await scenario.held.arrived();
        expect(scenario.following.posts()).toMatchObject([{ ending: 'answered', status: 200 }]);
        await killAndReplace(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      });
    },
  );
});
