import { describe, expect, it } from '@jest/globals';
import type { Tally } from '../../src/core/activities';
import { eventually } from '../harness/eventually';
import { ENDLESS } from '../harness/following';
import { pendingRead } from '../harness/pending-poll';
import { killAndReplace, onWorker, type Scenario } from '../harness/scenario';

/*
 * A poll of a dead worker is given up 30 s after its last heartbeat, a workflow task 10 s after it was offered to the dead
 * worker; a new worker starts in between. It takes 40 to 70 s on two cores.
 */

/** A turn that ends only when the test says so; it is read once by a timer, and then by one activity. */
const PLOT = {
  job: ENDLESS,
  asked: { polling: { initial: '2s', growth: 0, maximum: '2s', jitter: 0, timerPolls: 1 } },
} as const;

const BY_RETRIES = { ...PLOT, env: { AGENT_API_IN_PROCESS_POLLS: '0' } } as const;

/** What the service has answered since the look before the send, by the journal. */
function answered({ environment, following }: Scenario): number {
  const reads = { ...following.key, operation: 'get', ending: 'answered' } as const;
  return environment.sandbox.journal.entries(reads).length - 1;
}

async function untilAnswered(scenario: Scenario, polls: number): Promise<void> {
  await eventually(`${polls} answers`, () => answered(scenario) >= polls);
}

/** Has the next read hang, and waits until it is under way. */
async function holdRead({ following }: Scenario): Promise<void> {
  following.setFault({ name: 'hold', operation: 'get', times: 1 });
  await following.reached({ fault: 'hold' });
}

/** How many answers of the pending poll the server doesn't know yet, by its last heartbeat. */
async function unrecorded(scenario: Scenario): Promise<number> {
  const polls = answered(scenario) - 1;
  const { heartbeatDetails } = (await pendingRead(scenario.following)) ?? {};
  const [payload] = heartbeatDetails?.payloads ?? [];
  if (!payload) return polls;
  return polls - (JSON.parse(Buffer.from(payload.data ?? []).toString()) as Tally).polls;
}

/** Starts another worker by `start`, and waits until it has read. */
async function readsOn(scenario: Scenario, start: () => Promise<unknown>): Promise<void> {
  const before = answered(scenario);
  await start();
  await untilAnswered(scenario, before + 2);
}

/** Kills the worker, and ends as {@link expectRightEnd} on another one. */
async function expectRightEndAfterKill(scenario: Scenario, lost = 0): Promise<void> {
  await readsOn(scenario, () => killAndReplace(scenario));
  await expectRightEnd(scenario, lost);
}

/** Ends the turn, and expects one message, and a receipt that counts every answer but those that are `lost`. */
async function expectRightEnd(scenario: Scenario, lost = 0): Promise<void> {
  const { following } = scenario;
  following.changeJob({ status: 'failed' });
  const { status, followUp } = await following.result();
  expect(status).toBe('failed');
  expect(followUp).toMatchObject({ evidence: 'seen-active', delivery: { verdict: 'accepted', sends: 1 } });
  expect(followUp.polls).toBe(answered(scenario) - lost);
  expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
  expect(following.processed()).toEqual([true]);
}

describe('a worker that polls', () => {
  // Proves L1.
  it.concurrent(
    'by retries, and is killed in an attempt: another one reads again, and what was answered before is counted',
    () =>
      onWorker(BY_RETRIES, async (scenario) => {
        await untilAnswered(scenario, 3);
        await holdRead(scenario);
        await expectRightEndAfterKill(scenario);
        // The read in which the worker died was never answered: it tells nothing, and is no poll.
        expect(scenario.following.gets()).toBe(answered(scenario) + 2);
      }),
  );

  // Proves L1.
  it.concurrent(
    'in its process, and is killed in a read: another one reads again, from the last heartbeat',
    () =>
      onWorker(PLOT, async (scenario) => {
        await untilAnswered(scenario, 3);
        await holdRead(scenario);
        await expectRightEndAfterKill(scenario, await unrecorded(scenario));
        expect(scenario.following.gets()).toBe(answered(scenario) + 2);
      }),
  );

  // Proves L2.
  it.concurrent(
    'in its process, and is told to end: it hands the wait over at once, with every answer counted',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { environment, worker } = scenario;
        await untilAnswered(scenario, 4);
        worker.signal('SIGTERM');
        expect(await worker.exited).toEqual({ code: 0, signal: null });
        expect((await pendingRead(scenario.following))?.attempt).toBe(2);
        expect(await unrecorded(scenario)).toBe(0);
        await readsOn(scenario, () => environment.startWorker());
        await expectRightEnd(scenario);
      }),
  );

  // Proves L1.
  it.concurrent(
    'in its process, and stands still for too long: another one reads on, and nothing is counted twice',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { environment, worker, following } = scenario;
        await untilAnswered(scenario, 3);
        worker.signal('SIGSTOP');
        const lost = await unrecorded(scenario);
        await readsOn(scenario, () => environment.startWorker());
        worker.signal('SIGCONT');
        // It is told with its next heartbeat that it is no longer wanted; what it reads until then is nobody's poll.
        following.changeJob({ status: 'failed' });
        const { followUp } = await following.result();
        expect(followUp.polls).toBeLessThanOrEqual(answered(scenario) - lost);
        expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
        expect(following.processed()).toEqual([true]);
      }),
  );

  // Proves L2.
  it.concurrent(
    'in its process hands each read to the queue under a limit, and takes it back without one',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { environment, following } = scenario;
        const { limits } = environment.followUps;
        const attempt = async () => (await pendingRead(following))?.attempt ?? 0;
        await untilAnswered(scenario, 2);
        expect(await attempt()).toBe(1);
        await limits.set({ readsTotal: '100/s' });
        await eventually('reads by attempts of their own', async () => (await attempt()) >= 4);
        await limits.clear();
        const readsInProcess = async () => {
          const [before, reads] = [await attempt(), answered(scenario)];
          await untilAnswered(scenario, reads + 3);
          return (await attempt()) === before;
        };
        await eventually('reads in the process', readsInProcess);
        await expectRightEnd(scenario);
      }),
  );
});
