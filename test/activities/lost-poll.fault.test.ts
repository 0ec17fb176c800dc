import { expect, it } from '@jest/globals';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../harness/follow-up-under-test';
import { findPendingPoll, POLL_EVERY_SECOND, waitForAttempt } from '../harness/pending-poll';
import { withWorker } from '../harness/scenario';

// Proves L2.
it('if a worker is killed during a poll, the next attempt runs on another worker, and the receipt counts every read', () =>
  withWorker(
    { job: ENDLESS_TURN, requestOverrides: { polling: POLL_EVERY_SECOND } },
    async ({ environment, following, worker }) => {
      await waitForAttempt(following, 3);
      const hold = { name: 'hold', operation: 'get', times: 1 } as const;
      environment.sandbox.setFault({ ...hold, ...following.key });
      await following.waitForRequest({ operation: 'get', fault: 'hold' });
      worker.signal('SIGKILL');
      await worker.exited;
      const lost = (await findPendingPoll(following))?.attempt ?? 0;
      await environment.startWorker();
      // The attempt of the killed worker times out after the HTTP timeout of 10 s and further 15 s.
      await waitForAttempt(following, lost + 2);
      following.changeJob({ status: 'failed' });
      const { status, receipt } = await following.result();
      // The baseline read is not a poll.
      const polls = following.readCount() - 1;
      expect(polls).toBeGreaterThan(lost + 2);
      const counted = {
        delivery: ACCEPTED_BY_RESPONSE,
        polls,
        responseCounts: { active: polls - 1, failed: 1 },
      };
      expect({ status, receipt }).toMatchObject({ status: 'failed', receipt: counted });
      expect(following.processedFlags()).toEqual([true]);
    },
  ));
