import { describe, expect, it, jest } from '@jest/globals';
import { BY_RESPONSE, ENDLESS } from '../../harness/following';
import {
  ANSWERED,
  endAfterReading,
  FOUND_BY_READING,
  killAndReplace,
  NOBODY_KNOWS,
  NOT_PROCESSED,
  onWorker,
  PROCESSED,
  type Scenario,
  type ScenarioOptions,
  showsPhase,
  untilHeld,
} from '../../harness/scenario';

/**
 * The send is given up 19 s after its start (2 s for each of its exchanges and 15 s), a workflow task of the dead worker 10 s after
 * its own; two workers start one after the other, beside those of four other tests. It takes 15 to 50 s on two cores.
 */
jest.setTimeout(150_000);

/** Kills the worker at a point, lets the job come to this status, and expects how the follow-up ends on another worker. */
function expectAfterKill(
  options: ScenarioOptions,
  point: (scenario: Scenario) => Promise<unknown>,
  ending: object,
  status?: 'failed',
): Promise<void> {
  return onWorker(options, async (scenario) => {
    await point(scenario);
    await killAndReplace(scenario);
    if (status !== undefined) scenario.following.changeJob({ status });
    expect(await scenario.following.ending()).toEqual(ending);
  });
}

describe('a worker that is killed before the send', () => {
  it.concurrent('while it looks at the job: another one looks again and sends the message, once', () =>
    expectAfterKill({ fault: { name: 'hold', operation: 'get', times: 1 } }, untilHeld, ANSWERED),
  );

  it.concurrent('with the job read and the POST not begun: another one reads it and sends, once', () => {
    const looked = async ({ following, held }: Scenario) => {
      await held.arrived();
      expect(await following.reached({ operation: 'get', ending: 'answered' })).toHaveLength(1);
    };
    return expectAfterKill({ hold: ['RecordActivityTaskHeartbeat', 'call'] }, looked, ANSWERED);
  });

  it.concurrent('with the permission to send on its way: nobody can tell, and nothing is sent', () =>
    expectAfterKill({ hold: ['RecordActivityTaskHeartbeat', 'answer'] }, ({ held }) => held.arrived(), {
      ...NOBODY_KNOWS,
      posts: [],
    }),
  );

  it.concurrent('while a 429 is waited out: another one sends the message, which is processed once', () => {
    const fault = {
      name: 'http-429',
      operation: 'message',
      times: 1,
      parameters: { retryAfter: 8 },
    } as const;
    const limited = ({ following }: Scenario) =>
      following.progressWhen(({ lastAnswer }) => lastAnswer?.includes('429') === true);
    const twice = { ...ANSWERED, delivery: { ...BY_RESPONSE, sends: 2 }, posts: [false, true] };
    return expectAfterKill({ fault }, limited, twice);
  });
});

describe('a worker that is killed while its POST is unanswered', () => {
  it.concurrent('having been processed: the running turn proves it, and the message is not sent twice', () =>
    onWorker({ job: ENDLESS, fault: PROCESSED }, async (scenario) => {
      await untilHeld(scenario);
      await killAndReplace(scenario);
      expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
    }),
  );

  it.concurrent('processed, with a turn too short to be seen: nobody can tell, it is not sent twice', () =>
    expectAfterKill({ job: { turn: { durationMs: 300 } }, fault: PROCESSED }, untilHeld, NOBODY_KNOWS),
  );

  it.concurrent('not having been processed: nobody can tell, and it is not sent again', () =>
    expectAfterKill({ fault: NOT_PROCESSED }, untilHeld, { ...NOBODY_KNOWS, posts: [false] }),
  );

  it.concurrent('answered but not reported: the turn proves it, and it is not sent twice', () => {
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
  });
});

describe('a worker that is killed after the send', () => {
  const failed = { ...ANSWERED, status: 'failed' };

  it.concurrent('between two polls: another one watches on, and the message is not sent again', () => {
    const asked = { polling: { initial: '3s', growth: 0, maximum: '3s' } } as const;
    const between = ({ following }: Scenario) =>
      following.progressWhen(({ polls, nextPollAt }) => polls > 1 && nextPollAt !== null);
    return expectAfterKill({ job: ENDLESS, asked }, between, failed, 'failed');
  });

  it.concurrent('in a poll: another one reads again, and the message is not sent again', () => {
    const fault = { name: 'hold', operation: 'get', skip: 2, times: 1 } as const;
    return expectAfterKill({ job: ENDLESS, fault }, untilHeld, failed, 'failed');
  });

  it.concurrent('while the link settles: another one waits for it, and the message is not sent again', () => {
    const job = { turn: { outcome: 'no-change', reads: 2 } } as const;
    return onWorker({ job, asked: { settle: '60s' } }, async (scenario) => {
      const { following } = scenario;
      await showsPhase(following, 'settling');
      await killAndReplace(scenario);
      following.changeJob({ prLink: 'https://code.test/pull/9' });
      expect(await following.ending()).toEqual(ANSWERED);
      expect((await following.result()).prLink).toBe('https://code.test/pull/9');
    });
  });
});
