import { expect, it } from '@jest/globals';
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

async function untilAnswered(scenario: Scenario, more: number): Promise<void> {
  const polls = answered(scenario) + more;
  await eventually(`${polls} answers`, () => answered(scenario) >= polls);
}

const attempt = async ({ following }: Scenario) => (await pendingRead(following))?.attempt ?? 0;

/** How many answers of the pending poll the server doesn't know yet, by its last heartbeat. */
async function unrecorded(scenario: Scenario): Promise<number> {
  const polls = answered(scenario) - 1;
  const [payload] = (await pendingRead(scenario.following))?.heartbeatDetails?.payloads ?? [];
  if (!payload) return polls;
  return polls - (JSON.parse(Buffer.from(payload.data ?? []).toString()) as Tally).polls;
}

/** Ends the turn, and expects one message, and a receipt that counts every answer but those that are `lost`. */
async function expectRightEnd(scenario: Scenario, lost = 0): Promise<void> {
  const { following } = scenario;
  await untilAnswered(scenario, 2);
  following.changeJob({ status: 'failed' });
  const { status, followUp } = await following.result();
  const polls = answered(scenario) - lost;
  const counted = { delivery: BY_RESPONSE, polls, observed: { active: polls - 1, failed: 1 } };
  expect({ status, followUp }).toMatchObject({ status: 'failed', followUp: counted });
  expect(following.processed()).toEqual([true]);
}

// Proves L1.
it.concurrent(
  'a worker that is killed in a read of its poll: another one reads again, from the last heartbeat',
  () =>
    onWorker(PLOT, async (scenario) => {
      const { following } = scenario;
      await untilAnswered(scenario, 4);
      following.setFault({ name: 'hold', operation: 'get', times: 1 });
      await following.reached({ fault: 'hold' });
      const lost = await unrecorded(scenario);
      await killAndReplace(scenario);
      await expectRightEnd(scenario, lost);
      expect(following.gets()).toBe(answered(scenario) + 2);
    }),
);

// Proves L2.
it.concurrent(
  'a worker that polls hands each read to the queue under a limit, and the wait at its end, with every answer counted',
  () =>
    onWorker(PLOT, async (scenario) => {
      const { environment, worker } = scenario;
      const { limits } = environment.followUps;
      await untilAnswered(scenario, 4);
      expect(await attempt(scenario)).toBe(1);
      await limits.set({ readsTotal: '100/s' });
      await eventually('reads by attempts of their own', async () => (await attempt(scenario)) >= 4);
      await limits.clear();
      await eventually('reads in the process', async () => {
        const before = await attempt(scenario);
        await untilAnswered(scenario, 3);
        return (await attempt(scenario)) === before;
      });
      const last = await attempt(scenario);
      worker.signal('SIGTERM');
      expect(await worker.exited).toEqual({ code: 0, signal: null });
      expect([await attempt(scenario), await unrecorded(scenario)]).toEqual([last + 1, 0]);
      await environment.startWorker();
      await expectRightEnd(scenario);
    }),
);
