import { describe, expect, it } from '@jest/globals';
import { behindGate, failure, onWorker, result, type Scenario, showsPhase } from './scenario';

/**
 * The send is given up 19 s after its start (2 s for each of its exchanges and 15 s), a workflow task of the dead worker 10 s after
 * its own; two workers start one after the other, beside those of four other tests. It takes 15 to 50 s on two cores.
 */
const LIMIT_MS = 150_000;

/** A turn that ends only when the test says so. */
const ENDLESS = { turn: { durationMs: null } } as const;

/** Another worker of the same queues takes the place of the one that is killed. */
async function killAndReplace({ environment, worker }: Scenario): Promise<void> {
  worker.signal('SIGKILL');
  expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
  await environment.startWorker();
}

const ONCE = { posts: 1, processed: 1 };
const BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
const BY_READ = { verdict: 'accepted', confirmedBy: 'read', sends: 1 };
const UNKNOWN = { verdict: 'unknown', confirmedBy: null, sends: 1 };

describe('a worker that is killed before the send', () => {
  it.concurrent(
    'while it looks at the job: another one looks again and sends the message, once',
    () =>
      onWorker({ fault: { name: 'hold', operation: 'get', times: 1 } }, async (scenario) => {
        const { journal } = scenario.environment.sandbox;
        await journal.waitFor({ ...scenario.following.key, fault: 'hold' }, { timeoutMs: 30_000 });
        await killAndReplace(scenario);
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'completed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the job looked at and the POST not begun: another one looks again and sends the message, once',
    () =>
      behindGate(['RecordActivityTaskHeartbeat', 'call'], {}, async (scenario) => {
        await scenario.held.arrived();
        expect(
          scenario.environment.sandbox.journal.entries({
            ...scenario.following.key,
            ...{ operation: 'get', ending: 'answered' },
          }),
        ).toHaveLength(1);
        await killAndReplace(scenario);
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'completed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the permission to send on its way: nobody can tell, and nothing is sent',
    () =>
      behindGate(['RecordActivityTaskHeartbeat', 'answer'], {}, async (scenario) => {
        await scenario.held.arrived();
        await killAndReplace(scenario);
        expect(await failure(scenario.following)).toEqual({
          ...{ type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: 0, processed: 0 },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'while a 429 is waited out: another one sends the message, which is processed once',
    () => {
      const fault = {
        name: 'http-429',
        operation: 'message',
        times: 1,
        parameters: { retryAfter: 8 },
      } as const;
      return onWorker({ fault }, async (scenario) => {
        await scenario.following.progressWhen(({ lastAnswer }) => lastAnswer?.includes('429') === true);
        await killAndReplace(scenario);
        expect(await result(scenario.following)).toEqual({
          status: 'completed',
          delivery: { ...BY_RESPONSE, sends: 2 },
          evidence: 'seen-active',
          posts: 2,
          processed: 1,
        });
      });
    },
    LIMIT_MS,
  );
});

describe('a worker that is killed while its POST is unanswered', () => {
  const processed = { name: 'hold', operation: 'message', parameters: { processed: 'before' } } as const;
  const never = { name: 'hold', operation: 'message', parameters: { processed: 'never' } } as const;

  async function untilHeld({ environment, following }: Scenario): Promise<void> {
    await environment.sandbox.journal.waitFor({ ...following.key, fault: 'hold' }, { timeoutMs: 30_000 });
  }

  it.concurrent(
    'having been processed: the running turn proves it, and the message is not sent twice',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await killAndReplace(scenario);
        await showsPhase(scenario.following, 'watching');
        scenario.environment.sandbox.changeJob(scenario.following.key, {
          status: 'completed',
          prLink: 'https://x.test/1',
        });
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'completed', delivery: BY_READ, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'having been processed, with a turn too short to be seen: nobody can tell, and it is not sent twice',
    () =>
      onWorker({ job: { turn: { durationMs: 300 } }, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await killAndReplace(scenario);
        expect(await failure(scenario.following)).toEqual({
          ...{ type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'not having been processed: nobody can tell, and it is not sent again',
    () =>
      onWorker({ fault: never }, async (scenario) => {
        await untilHeld(scenario);
        await killAndReplace(scenario);
        expect(await failure(scenario.following)).toEqual({
          ...{ type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: 1, processed: 0 },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the answer received and not reported: the running turn proves it, and it is not sent twice',
    () => {
      const options = { job: ENDLESS, fault: { ...processed, times: 1 } };
      return behindGate(['RespondActivityTaskCompleted', 'call'], options, async (scenario) => {
        await untilHeld(scenario);
        scenario.environment.sandbox.release();
        await scenario.held.arrived();
        expect(scenario.following.posts()).toEqual([
          expect.objectContaining({ ending: 'answered', status: 200 }),
        ]);
        await killAndReplace(scenario);
        await showsPhase(scenario.following, 'watching');
        scenario.environment.sandbox.changeJob(scenario.following.key, { status: 'completed' });
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'completed', delivery: BY_READ, evidence: 'seen-active', ...ONCE },
        });
      });
    },
    LIMIT_MS,
  );
});

describe('a worker that is killed after the send', () => {
  it.concurrent(
    'between two polls: another one watches on, and the message is not sent again',
    () => {
      const asked = { polling: { initial: '3s', growth: 0, maximum: '3s' } } as const;
      return onWorker({ job: ENDLESS, asked }, async (scenario) => {
        await scenario.following.progressWhen(({ polls, nextPollAt }) => polls > 1 && nextPollAt !== null);
        await killAndReplace(scenario);
        scenario.environment.sandbox.changeJob(scenario.following.key, { status: 'failed' });
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'failed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      });
    },
    LIMIT_MS,
  );

  it.concurrent(
    'in a poll: another one reads again, and the message is not sent again',
    () => {
      const fault = { name: 'hold', operation: 'get', skip: 2, times: 1 } as const;
      return onWorker({ job: ENDLESS, fault }, async (scenario) => {
        await scenario.environment.sandbox.journal.waitFor(
          { operation: 'get', fault: 'hold' },
          { timeoutMs: 30_000 },
        );
        await killAndReplace(scenario);
        scenario.environment.sandbox.changeJob(scenario.following.key, { status: 'failed' });
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'failed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      });
    },
    LIMIT_MS,
  );

  it.concurrent(
    'while the link settles: another one waits for it, and the message is not sent again',
    () => {
      const options = {
        job: { turn: { outcome: 'no-change', reads: 2 } },
        asked: { settle: '60s' },
      } as const;
      return onWorker(options, async (scenario) => {
        await showsPhase(scenario.following, 'settling');
        await killAndReplace(scenario);
        scenario.environment.sandbox.changeJob(scenario.following.key, {
          prLink: 'https://code.test/pull/9',
        });
        const { prLink, followUp } = await scenario.following.result();
        expect({ prLink, delivery: followUp.delivery, evidence: followUp.evidence }).toEqual({
          ...{ prLink: 'https://code.test/pull/9', delivery: BY_RESPONSE, evidence: 'seen-active' },
        });
        expect(scenario.following.posts().map((post) => post.processed)).toEqual([true]);
      });
    },
    LIMIT_MS,
  );
});
