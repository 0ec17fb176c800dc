import { describe, expect, it } from '@jest/globals';
import type { Tally } from '../../src/core/activities';
import { eventually } from '../harness/eventually';
import { BY_RESPONSE, ENDLESS } from '../harness/following';
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

/** What the service has answered since the look before the send, by the journal. */
function answered({ environment, following }: Scenario): number {
  const reads = { ...following.key, operation: 'get', ending: 'answered' } as const;
  return environment.sandbox.journal.entries(reads).length - 1;
}

const untilAnswered = (scenario: Scenario, polls: number) =>
  eventually(`${polls} answers`, () => answered(scenario) >= polls);

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

/** Ends the turn, and expects one message, and a receipt that counts every answer but those that are `lost`. */
async function expectRightEnd(scenario: Scenario, lost = 0): Promise<void> {
  const { following } = scenario;
  following.changeJob({ status: 'failed' });
  const { status, followUp } = await following.result();
  const polls = answered(scenario) - lost;
  expect({ status, followUp }).toMatchObject({
    status: 'failed',
    followUp: { delivery: BY_RESPONSE, polls, observed: { active: polls - 1, failed: 1 } },
  });
  expect(following.processed()).toEqual([true]);
}

describe('a worker that polls', () => {
  // Proves L1.
  it.concurrent(
    'in its process, and is killed in a read: another one reads again, from the last heartbeat',
    () =>
      onWorker(PLOT, async (scenario) => {
        await untilAnswered(scenario, 3);
        scenario.following.setFault({ name: 'hold', operation: 'get', times: 1 });
        await scenario.following.reached({ fault: 'hold' });
        const lost = await unrecorded(scenario);
        await readsOn(scenario, () => killAndReplace(scenario));
        await expectRightEnd(scenario, lost);
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

  // Proves L2.
  it.concurrent(
    'in its process hands each read to the queue under a limit, and takes it back without one',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { limits } = scenario.environment.followUps;
        const attempt = async () => (await pendingRead(scenario.following))?.attempt ?? 0;
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
