import { describe, expect, it } from '@jest/globals';
import { FollowUpClient } from '../../src/client';
import type { Tally } from '../../src/core/activities';
import { eventually } from '../harness/eventually';
import { dueAt, pendingRead } from '../harness/pending-poll';
import { behindGate, onWorker, type Scene } from './scene';

/**
 * A poll of a dead worker is given up 30 s after its last heartbeat, a workflow task 10 s after it was offered to the dead
 * worker; a new worker starts in between. It takes 40 to 70 s on two cores.
 */
const LIMIT_MS = 150_000;

/** A turn that ends only when the test says so; it is read once by a timer, and then by one activity. */
const PLOT = {
  job: { turn: { durationMs: null } },
  asked: { polling: { initial: '2s', growth: 0, maximum: '2s', jitter: 0, timerPolls: 1 } },
} as const;

const BY_RETRIES = { ...PLOT, env: { AGENT_API_IN_PROCESS_POLLS: '0' } } as const;

/** What the service has answered since the look before the send, by the journal. */
function answered({ house, following }: Scene): number {
  return house.sandbox.journal.entries({ ...following.key, operation: 'get', ending: 'answered' }).length - 1;
}

async function untilAnswered(scene: Scene, polls: number): Promise<void> {
  await eventually(`${polls} answers`, () => answered(scene) >= polls, { timeoutMs: 70_000 });
}

/** The counts that the server has of the pending poll. */
async function recorded({ following }: Scene): Promise<number> {
  const { heartbeatDetails } = (await pendingRead(following)) ?? {};
  const [payload] = heartbeatDetails?.payloads ?? [];
  return payload ? (JSON.parse(Buffer.from(payload.data ?? []).toString()) as Tally).polls : 0;
}

/** Kills the worker, has another one take its place, and waits until that one has read. */
async function killAndReplace(scene: Scene): Promise<void> {
  const { house, worker } = scene;
  worker.signal('SIGKILL');
  expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
  const before = answered(scene);
  await house.startWorker();
  await untilAnswered(scene, before + 2);
}

/** Ends the turn, and expects one message, and a receipt that counts every answer but those that are `lost`. */
async function endsRight(scene: Scene, lost = 0): Promise<void> {
  const { house, following } = scene;
  house.sandbox.changeJob(following.key, { status: 'failed' });
  const { status, followUp } = await following.result();
  expect(status).toBe('failed');
  expect(followUp).toMatchObject({ evidence: 'seen-active', delivery: { verdict: 'accepted', sends: 1 } });
  expect(followUp.polls).toBe(answered(scene) - lost);
  expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
  expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
}

describe('a worker that is killed while one activity polls by its own retries', () => {
  it.concurrent(
    'between two attempts: another one reads on, and every answer is counted',
    () =>
      onWorker(BY_RETRIES, async (scene) => {
        await eventually('a wait that the server keeps', async () => {
          const pending = await pendingRead(scene.following);
          return (pending?.attempt ?? 0) > 2 && pending !== undefined && dueAt(pending) > Date.now() + 1_000;
        });
        await killAndReplace(scene);
        await endsRight(scene);
        // The look, and one for each poll: the dead worker has left no read unanswered.
        expect(scene.following.gets()).toBe(answered(scene) + 1);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'in an attempt: another one reads again, and what was answered before is counted',
    () =>
      onWorker(BY_RETRIES, async (scene) => {
        const { house, following } = scene;
        await untilAnswered(scene, 3);
        house.sandbox.setFault({ name: 'hold', ...following.key, operation: 'get', times: 1 });
        await house.sandbox.journal.waitFor({ ...following.key, fault: 'hold' });
        await killAndReplace(scene);
        await endsRight(scene);
        // The read in which the worker died was never answered: it tells nothing, and is no poll.
        expect(following.gets()).toBe(answered(scene) + 2);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'while it hands a wait over to the server: that one answer is lost, and every other is counted',
    () =>
      behindGate(['RespondActivityTaskFailed', 'call'], BY_RETRIES, async (scene) => {
        // The first wait is handed over without a read; the next report has one.
        await scene.held.arrived();
        scene.held.release();
        const report = scene.gate.hold('RespondActivityTaskFailed', 'call');
        await report.arrived();
        expect(answered(scene)).toBeGreaterThan(0);
        await killAndReplace(scene);
        await endsRight(scene, 1);
      }),
    LIMIT_MS,
  );
});

describe('a worker in whose process a follow-up is polled', () => {
  it.concurrent(
    'that is killed between two reads: another one goes on from the counts of the last heartbeat',
    () =>
      onWorker(PLOT, async (scene) => {
        await untilAnswered(scene, 4);
        const lost = answered(scene) - 1 - (await recorded(scene));
        expect(lost).toBeGreaterThan(0);
        await killAndReplace(scene);
        await endsRight(scene, lost);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'that is killed in a read: another one reads again, from the counts of the last heartbeat',
    () =>
      onWorker(PLOT, async (scene) => {
        const { house, following } = scene;
        await untilAnswered(scene, 3);
        house.sandbox.setFault({ name: 'hold', ...following.key, operation: 'get', times: 1 });
        await house.sandbox.journal.waitFor({ ...following.key, fault: 'hold' });
        const lost = answered(scene) - 1 - (await recorded(scene));
        await killAndReplace(scene);
        await endsRight(scene, lost);
        expect(following.gets()).toBe(answered(scene) + 2);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'that is told to end: it hands the wait over at once, with every answer counted',
    () =>
      onWorker(PLOT, async (scene) => {
        const { house, worker } = scene;
        await untilAnswered(scene, 4);
        worker.signal('SIGTERM');
        expect(await worker.exited).toEqual({ code: 0, signal: null });
        expect((await pendingRead(scene.following))?.attempt).toBe(2);
        expect(await recorded(scene)).toBe(answered(scene) - 1);
        const before = answered(scene);
        await house.startWorker();
        await untilAnswered(scene, before + 2);
        await endsRight(scene);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'that stands still for too long: another one reads on, and nothing is counted twice',
    () =>
      onWorker(PLOT, async (scene) => {
        const { house, worker, following } = scene;
        await untilAnswered(scene, 3);
        worker.signal('SIGSTOP');
        const lost = answered(scene) - 1 - (await recorded(scene));
        const before = answered(scene);
        await house.startWorker();
        await untilAnswered(scene, before + 2);
        worker.signal('SIGCONT');
        // It is told with its next heartbeat that it is no longer wanted; what it reads until then is nobody's poll.
        house.sandbox.changeJob(following.key, { status: 'failed' });
        const { followUp } = await following.result();
        expect(followUp.polls).toBeLessThanOrEqual(answered(scene) - lost);
        expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
        expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'hands each read to the queue within a minute of a limit, and takes it back without one; every answer is counted',
    () =>
      onWorker(PLOT, async (scene) => {
        const { house, following } = scene;
        const { sendTaskQueue, readTaskQueue } = house.taskQueues;
        const limits = new FollowUpClient(house.client, { readTaskQueue, sendTaskQueue });
        await untilAnswered(scene, 2);
        expect((await pendingRead(following))?.attempt).toBe(1);
        await limits.limits.set({ readsTotal: '100/s' });
        const attempt = async () => (await pendingRead(following))?.attempt ?? 0;
        await eventually('reads by attempts of their own', async () => (await attempt()) >= 4, {
          timeoutMs: 60_000,
        });
        await limits.limits.clear();
        await eventually(
          'reads in the process',
          async () => {
            const [before, reads] = [await attempt(), answered(scene)];
            await untilAnswered(scene, reads + 3);
            return (await attempt()) === before;
          },
          { timeoutMs: 60_000 },
        );
        await endsRight(scene);
      }),
    LIMIT_MS + 60_000,
  );
});
