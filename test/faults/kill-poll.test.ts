import { describe, expect, it } from '@jest/globals';
import type { Following } from '../harness/following';
import { dueAt, pendingRead, untilAttempt } from '../harness/pending-poll';
import { onWorker, type Scene } from './scene';

/**
 * A read of a dead worker is given up 15 s after its last sign of life, a workflow task 10 s after it was offered to
 * the dead worker; a new worker starts in between. It takes 20 to 40 s on two cores.
 */
const LIMIT_MS = 120_000;

/** A turn that ends only when the test says so; it is read once by a timer, and then by one activity's retries. */
const PLOT = {
  job: { turn: { durationMs: null } },
  asked: { polling: { initial: '2s', growth: 0, maximum: '2s', jitter: 0, timerPolls: 1 } },
} as const;

/** What the service has answered since the baseline, by the journal. */
function answered({ house, following }: Scene): number {
  return house.sandbox.journal.entries({ ...following.key, operation: 'get', ending: 'answered' }).length - 1;
}

/** Waits until the patient read waits for an attempt that is a second away: no read is under way. */
async function untilBackOff(following: Following): Promise<void> {
  const giveUpAt = Date.now() + 30_000;
  for (;;) {
    const pending = await pendingRead(following);
    if (pending !== undefined && (pending.attempt ?? 0) > 2 && dueAt(pending) > Date.now() + 1_000) return;
    if (Date.now() > giveUpAt) throw new Error('the patient read did not wait');
  }
}

/** Kills the worker of a scene, has another one take its place, and waits until that one has read. */
async function killAndReplace(scene: Scene): Promise<void> {
  const { house, following, worker } = scene;
  worker.signal('SIGKILL');
  expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
  const before = answered(scene);
  await house.startWorker();
  const filter = { ...following.key, operation: 'get', ending: 'answered' } as const;
  await house.sandbox.journal.waitFor(filter, { atLeast: before + 2, timeoutMs: 40_000 });
}

/** Ends the turn, and expects the receipt to count what the service has answered, and one message. */
async function endsRight(scene: Scene): Promise<void> {
  const { house, following } = scene;
  house.sandbox.changeJob(following.key, { status: 'failed' });
  const { status, followUp } = await following.result();
  expect(status).toBe('failed');
  expect(followUp).toMatchObject({ evidence: 'seen-active', delivery: { verdict: 'accepted', sends: 1 } });
  expect(followUp.polls).toBe(answered(scene));
  expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
  expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
}

describe('a worker that is killed while a read polls by its own retries', () => {
  it.concurrent(
    'between two attempts: another one reads on, and every answer is counted',
    () =>
      onWorker(PLOT, async (scene) => {
        await untilBackOff(scene.following);
        await killAndReplace(scene);
        await endsRight(scene);
        // The baseline, and one for each poll: the dead worker has left no read unanswered.
        expect(scene.following.gets()).toBe(answered(scene) + 1);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'in an attempt: another one reads again, and what was answered before is counted',
    () =>
      onWorker(PLOT, async (scene) => {
        const { house, following } = scene;
        await untilAttempt(following, 3);
        house.sandbox.setFault({ name: 'hold', ...following.key, operation: 'get', times: 1 });
        await house.sandbox.journal.waitFor({ ...following.key, fault: 'hold' });
        await killAndReplace(scene);
        await endsRight(scene);
        // The read in which the worker died reached the service and was never answered: it tells nothing, and is no
        // poll. The journal has it beside the baseline and the polls.
        expect(following.gets()).toBe(answered(scene) + 2);
      }),
    LIMIT_MS,
  );
});
