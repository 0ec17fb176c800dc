import { expect, it } from '@jest/globals';
import { BY_RESPONSE, ENDLESS } from '../harness/following';
import { pendingPoll, SOON, untilAttempt } from '../harness/pending-poll';
import { onWorker } from '../harness/scenario';

// Proves L2.
it('a worker is killed during a poll: the next attempt continues on another worker, and every read is counted', () =>
  onWorker({ job: ENDLESS, asked: { polling: SOON } }, async ({ environment, following, worker }) => {
    await untilAttempt(following, 3);
    const hold = { name: 'hold', operation: 'get', times: 1 } as const;
    environment.sandbox.setFault({ ...hold, ...following.key });
    await following.reached({ operation: 'get', fault: 'hold' });
    worker.signal('SIGKILL');
    await worker.exited;
    const lost = (await pendingPoll(following))?.attempt ?? 0;
    await environment.startWorker();
    // The attempt of the killed worker times out after its 2 s and 15 s.
    await untilAttempt(following, lost + 2);
    following.changeJob({ status: 'failed' });
    const { status, receipt } = await following.result();
    // The baseline read is not a poll.
    const polls = following.gets() - 1;
    expect(polls).toBeGreaterThan(lost + 2);
    const counted = { delivery: BY_RESPONSE, polls, responseCounts: { active: polls - 1, failed: 1 } };
    expect({ status, receipt }).toMatchObject({ status: 'failed', receipt: counted });
    expect(following.processed()).toEqual([true]);
  }));
