import { expect, it } from '@jest/globals';
import type { Tally } from '../../src/core/activities';
import { eventually } from '../harness/eventually';
import { BY_RESPONSE, ENDLESS } from '../harness/following';
import { pendingRead } from '../harness/pending-poll';
import { onWorker } from '../harness/scenario';

/** Read once by a timer, and then by one activity. */
const POLLING = { initial: '2s', growth: 0, maximum: '2s', jitter: 0, timerPolls: 1 } as const;

// Proves L2.
it('a worker that polls hands each read to the queue under a limit, and the wait at its end, with every answer counted', () =>
  onWorker({ job: ENDLESS, asked: { polling: POLLING } }, async ({ environment, following, worker }) => {
    /** Since the look before the send, by the journal. */
    const answered = () => {
      const reads = { ...following.key, operation: 'get', ending: 'answered' } as const;
      return environment.sandbox.journal.entries(reads).length - 1;
    };
    const untilAnswered = (polls: number) => eventually(`${polls} answers`, () => answered() >= polls);
    const attempt = async () => (await pendingRead(following))?.attempt ?? 0;
    const { limits } = environment.followUps;

    await untilAnswered(3);
    expect(await attempt()).toBe(1);
    await limits.set({ readsTotal: '100/s' });
    await eventually('reads by attempts of their own', async () => (await attempt()) >= 4);
    await limits.clear();
    await eventually('reads in the process', async () => {
      const before = await attempt();
      await untilAnswered(answered() + 3);
      return (await attempt()) === before;
    });

    const last = await attempt();
    worker.signal('SIGTERM');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
    const handedOver = await pendingRead(following);
    const recorded = Buffer.from(handedOver?.heartbeatDetails?.payloads?.[0]?.data ?? []).toString();
    expect(handedOver?.attempt).toBe(last + 1);
    // The first one was read by the workflow.
    expect((JSON.parse(recorded) as Tally).polls).toBe(answered() - 1);

    const before = answered();
    await environment.startWorker();
    await untilAnswered(before + 2);
    following.changeJob({ status: 'failed' });
    const { status, followUp } = await following.result();
    const polls = answered();
    const counted = { delivery: BY_RESPONSE, polls, observed: { active: polls - 1, failed: 1 } };
    expect({ status, followUp }).toMatchObject({ status: 'failed', followUp: counted });
    expect(following.processed()).toEqual([true]);
  }));
