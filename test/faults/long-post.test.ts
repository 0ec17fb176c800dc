import { describe, expect, it } from '@jest/globals';
import { UPDATE_POLL_NOW } from '../../src/core/names';
import type { FollowUpProgress } from '../../src/core/result';
import { houseOf } from '../harness/house-of';

/** A POST may take longer than the 5 s after which the job is read beside it. */
const open = houseOf({ httpTimeoutMs: 20_000 });

const ENDLESS = { turn: { durationMs: null } } as const;

describe('a POST that takes so long that the job is read beside it', () => {
  it.concurrent(
    'leaves no read behind for which pollNow waits, though one was under way when it was answered',
    async () => {
      const house = await open();
      const { projectId, jobId } = house.sandbox.addJob(ENDLESS);
      const key = { projectId, jobId };
      house.sandbox.setFault({ ...key, name: 'hold', operation: 'message', times: 1 });
      // The second read, the first beside the POST, is still unanswered when the POST is.
      house.sandbox.setFault({
        ...key,
        name: 'slow',
        operation: 'get',
        skip: 1,
        times: 1,
        parameters: { delay: '9s' },
      });
      const rarely = { polling: { initial: '5m', maximum: '5m' }, deadline: '1h' } as const;
      const following = await house.send({ ...key, ...rarely });
      const { journal } = house.sandbox;
      await journal.waitFor({ ...key, operation: 'get' }, { atLeast: 2, timeoutMs: 20_000 });
      house.sandbox.release(key);
      await following.progressWhen(({ phase, nextPollAt }) => phase === 'watching' && nextPollAt !== null);

      const answer = house.client.withDeadline(Date.now() + 10_000, () =>
        following.handle.executeUpdate<FollowUpProgress, []>(UPDATE_POLL_NOW),
      );
      expect(await answer).toMatchObject({ lastAnswer: 'active' });
      expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
    },
    60_000,
  );

  it.concurrent(
    'and is not sent in the end: its reads beside are not in the receipt, and the next POST begins anew',
    async () => {
      const house = await open();
      const { projectId, jobId } = house.sandbox.addJob({ turn: { durationMs: 1_500 } });
      const key = { projectId, jobId };
      // Held for long, and then answered with 429.
      const parameters = { processed: 'after' } as const;
      house.sandbox.setFault({ ...key, name: 'hold', operation: 'message', times: 1, parameters });
      house.sandbox.setFault({ ...key, name: 'http-429', operation: 'message', times: 1 });
      const following = await house.send({ ...key, deadline: '60s' });
      const { journal } = house.sandbox;
      await journal.waitFor({ ...key, operation: 'get' }, { atLeast: 4, timeoutMs: 20_000 });
      house.sandbox.release(key);
      const { followUp } = await following.result();
      const [, second] = following.posts();
      const reads = journal.entries({ ...key, operation: 'get' });
      const after = reads.filter(({ number }) => number > (second?.number ?? Infinity));
      expect(followUp.polls).toBe(after.length);
      expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 2 });
    },
    60_000,
  );
});
