import { describe, expect, it } from '@jest/globals';
import { UPDATE_POLL_NOW } from '../../src/core/names';
import type { FollowUpProgress } from '../../src/core/result';
import { sharedEnvironment } from '../harness/shared-environment';

/** A POST may take longer than the 5 s after which the job is read beside it. */
const open = sharedEnvironment({ httpTimeoutMs: 20_000 });

const ENDLESS = { turn: { durationMs: null } } as const;

describe('a POST that takes so long that the job is read beside it', () => {
  it.concurrent(
    'leaves no read behind for which pollNow waits, though one was under way when it was answered',
    async () => {
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob(ENDLESS);
      const key = { projectId, jobId };
      environment.sandbox.setFault({ ...key, name: 'hold', operation: 'message', times: 1 });
      // The second read, the first beside the POST, is still unanswered when the POST is.
      environment.sandbox.setFault({
        ...key,
        name: 'slow',
        operation: 'get',
        skip: 1,
        times: 1,
        parameters: { delay: '9s' },
      });
      const rarely = { polling: { initial: '5m', maximum: '5m' }, deadline: '1h' } as const;
      const following = await environment.send({ ...key, ...rarely });
      const { journal } = environment.sandbox;
      await journal.waitFor({ ...key, operation: 'get' }, { atLeast: 2, timeoutMs: 20_000 });
      environment.sandbox.release(key);
      await following.progressWhen(({ phase, nextPollAt }) => phase === 'watching' && nextPollAt !== null);

      const answer = environment.client.withDeadline(Date.now() + 10_000, () =>
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
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob({ turn: { durationMs: 1_500 } });
      const key = { projectId, jobId };
      // Held for long, and then answered with 429.
      const parameters = { processed: 'after' } as const;
      environment.sandbox.setFault({ ...key, name: 'hold', operation: 'message', times: 1, parameters });
      environment.sandbox.setFault({ ...key, name: 'http-429', operation: 'message', times: 1 });
      const following = await environment.send({ ...key, deadline: '60s' });
      const { journal } = environment.sandbox;
      await journal.waitFor({ ...key, operation: 'get' }, { atLeast: 4, timeoutMs: 20_000 });
      environment.sandbox.release(key);
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
