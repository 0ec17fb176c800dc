import { describe, expect, it } from '@jest/globals';
import { behindGate, failure, onWorker, result, type Scene, showsPhase } from './scene';

/**
 * The send is given up 19 s after its start (2 s for each of its exchanges and 15 s), a workflow task of the dead worker 10 s after
 * its own; two workers start one after the other, beside those of four other tests. It takes 15 to 50 s on two cores.
 */
const LIMIT_MS = 150_000;

/** A turn that ends only when the test says so. */
const ENDLESS = { turn: { durationMs: null } } as const;

/** Another worker of the same queues takes the place of the one that is killed. */
async function killAndReplace({ house, worker }: Scene): Promise<void> {
  worker.signal('SIGKILL');
  expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
  await house.startWorker();
}

const ONCE = { posts: 1, processed: 1 };
const BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
const BY_READ = { verdict: 'accepted', confirmedBy: 'read', sends: 1 };
const UNKNOWN = { verdict: 'unknown', confirmedBy: null, sends: 1 };

describe('a worker that is killed before the send', () => {
  it.concurrent(
    'while it looks at the job: another one looks again and sends the message, once',
    () =>
      onWorker({ fault: { name: 'hold', operation: 'get', times: 1 } }, async (scene) => {
        const { journal } = scene.house.sandbox;
        await journal.waitFor({ ...scene.following.key, fault: 'hold' }, { timeoutMs: 30_000 });
        await killAndReplace(scene);
        expect(await result(scene.following)).toEqual({
          ...{ status: 'completed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the job looked at and the POST not begun: another one looks again and sends the message, once',
    () =>
      behindGate(['RecordActivityTaskHeartbeat', 'call'], {}, async (scene) => {
        await scene.held.arrived();
        expect(scene.house.sandbox.journal.entries({ operation: 'get', ending: 'answered' })).toHaveLength(1);
        await killAndReplace(scene);
        expect(await result(scene.following)).toEqual({
          ...{ status: 'completed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the permission to send on its way: nobody can tell, and nothing is sent',
    () =>
      behindGate(['RecordActivityTaskHeartbeat', 'answer'], {}, async (scene) => {
        await scene.held.arrived();
        await killAndReplace(scene);
        expect(await failure(scene.following)).toEqual({
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
      return onWorker({ fault }, async (scene) => {
        await scene.following.progressWhen(({ lastAnswer }) => lastAnswer?.includes('429') === true);
        await killAndReplace(scene);
        expect(await result(scene.following)).toEqual({
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

  async function untilHeld({ house, following }: Scene): Promise<void> {
    await house.sandbox.journal.waitFor({ ...following.key, fault: 'hold' }, { timeoutMs: 30_000 });
  }

  it.concurrent(
    'having been processed: the running turn proves it, and the message is not sent twice',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scene) => {
        await untilHeld(scene);
        await killAndReplace(scene);
        await showsPhase(scene.following, 'watching');
        scene.house.sandbox.changeJob(scene.following.key, {
          status: 'completed',
          prLink: 'https://x.test/1',
        });
        expect(await result(scene.following)).toEqual({
          ...{ status: 'completed', delivery: BY_READ, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'having been processed, and the turn ends before the send is given up: it was seen beside the POST',
    () => {
      // The send is given up after 35 s, and read beside after 15 at the latest: 5 s, and 10 for the dead worker's task.
      const env = { AGENT_API_TIMEOUT: '10s' };
      return onWorker({ job: ENDLESS, fault: processed, env }, async (scene) => {
        await untilHeld(scene);
        await killAndReplace(scene);
        const { journal } = scene.house.sandbox;
        await journal.waitFor({ operation: 'get', ending: 'answered' }, { atLeast: 2, timeoutMs: 60_000 });
        scene.house.sandbox.changeJob(scene.following.key, { status: 'completed' });
        const { raw } = await scene.following.handle.describe();
        expect(raw.pendingActivities?.map(({ activityType }) => activityType?.name)).toContain('sendMessage');
        expect(await result(scene.following)).toEqual({
          ...{ status: 'completed', delivery: BY_READ, evidence: 'seen-active', ...ONCE },
        });
      });
    },
    LIMIT_MS,
  );

  it.concurrent(
    'having been processed, with a turn too short to be seen: nobody can tell, and it is not sent twice',
    () =>
      onWorker({ job: { turn: { durationMs: 300 } }, fault: processed }, async (scene) => {
        await untilHeld(scene);
        await killAndReplace(scene);
        expect(await failure(scene.following)).toEqual({
          ...{ type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'not having been processed: nobody can tell, and it is not sent again',
    () =>
      onWorker({ fault: never }, async (scene) => {
        await untilHeld(scene);
        await killAndReplace(scene);
        expect(await failure(scene.following)).toEqual({
          ...{ type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: 1, processed: 0 },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the answer received and not reported: the running turn proves it, and it is not sent twice',
    () => {
      const plot = { job: ENDLESS, fault: { ...processed, times: 1 } };
      return behindGate(['RespondActivityTaskCompleted', 'call'], plot, async (scene) => {
        await untilHeld(scene);
        scene.house.sandbox.release();
        await scene.held.arrived();
        expect(scene.following.posts()).toEqual([
          expect.objectContaining({ ending: 'answered', status: 200 }),
        ]);
        await killAndReplace(scene);
        await showsPhase(scene.following, 'watching');
        scene.house.sandbox.changeJob(scene.following.key, { status: 'completed' });
        expect(await result(scene.following)).toEqual({
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
      return onWorker({ job: ENDLESS, asked }, async (scene) => {
        await scene.following.progressWhen(({ polls, nextPollAt }) => polls > 1 && nextPollAt !== null);
        await killAndReplace(scene);
        scene.house.sandbox.changeJob(scene.following.key, { status: 'failed' });
        expect(await result(scene.following)).toEqual({
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
      return onWorker({ job: ENDLESS, fault }, async (scene) => {
        await scene.house.sandbox.journal.waitFor({ operation: 'get', fault: 'hold' }, { timeoutMs: 30_000 });
        await killAndReplace(scene);
        scene.house.sandbox.changeJob(scene.following.key, { status: 'failed' });
        expect(await result(scene.following)).toEqual({
          ...{ status: 'failed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      });
    },
    LIMIT_MS,
  );

  it.concurrent(
    'while the link settles: another one waits for it, and the message is not sent again',
    () => {
      const plot = {
        job: { turn: { outcome: 'no-change', durationMs: 1_000 } },
        asked: { settle: '60s' },
      } as const;
      return onWorker(plot, async (scene) => {
        await showsPhase(scene.following, 'settling');
        await killAndReplace(scene);
        scene.house.sandbox.changeJob(scene.following.key, { prLink: 'https://code.test/pull/9' });
        const { prLink, followUp } = await scene.following.result();
        expect({ prLink, delivery: followUp.delivery, evidence: followUp.evidence }).toEqual({
          ...{ prLink: 'https://code.test/pull/9', delivery: BY_RESPONSE, evidence: 'seen-active' },
        });
        expect(scene.following.posts().map((post) => post.processed)).toEqual([true]);
      });
    },
    LIMIT_MS,
  );
});
