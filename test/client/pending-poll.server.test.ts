import { describe, expect, it } from '@jest/globals';
import { Client, type WorkflowClientInterceptor } from '@temporalio/client';
import { FollowUpClient } from '../../src/entries/client';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN, type FollowUpUnderTest, progressFromWorker } from '../harness/follow-up-under-test';
import { Operator } from '../harness/operator';
import { sharedEnvironment } from '../harness/shared-environment';
import {
  nextAttemptAtMs,
  findPendingPoll,
  RARE_POLL_OPTIONS,
  POLL_EVERY_SECOND,
  waitForAttempt,
  waitForLongBackoff,
} from '../harness/pending-poll';

const { open, follow } = sharedEnvironment();

const progressOf = (followUps: FollowUpClient, { handle }: FollowUpUnderTest) =>
  progressFromWorker(followUps.getHandle(handle.workflowId));

/** Returns the progress if something happens between its first query and its request for the pending activity. */
async function progressAround(between: () => Promise<unknown>, following: FollowUpUnderTest) {
  const { connection } = (await open()).client;
  const calls = { describe: 0, query: 0 };
  const interceptor: WorkflowClientInterceptor = {
    query: (input, next) => {
      calls.query += 1;
      return next(input);
    },
    describe: async (input, next) => {
      calls.describe += 1;
      // The first description finds the run.
      if (calls.describe === 2) await between();
      return next(input);
    },
  };
  const client = new Client({ connection, interceptors: { workflow: [interceptor] } });
  return { progress: await progressOf(new FollowUpClient(client), following), ...calls };
}

describe('the progress while pollJob is pending', () => {
  // Proves L5.
  it.concurrent(
    'counts the reads of all attempts, and has the time of the next attempt unless an operator has paused the activity',
    async () => {
      const environment = await open();
      const following = await follow(ENDLESS_TURN, RARE_POLL_OPTIONS);
      await waitForLongBackoff(following);
      const now = () => progressOf(environment.followUps, following);
      const polls = following.readCount() - 1;
      const pending = (await findPendingPoll(following)) ?? {};
      expect(pending.attempt).toBeGreaterThan(1);
      expect(pending.lastFailure?.message).toMatch(new RegExp(`^poll ${polls}: active, next read in \\d`));
      const progress = await now();
      const counts = { phase: 'watching', polls, responseCounts: { active: polls }, lastResponse: 'active' };
      expect(progress).toMatchObject(counts);
      expect(Date.parse(progress.nextPollAt ?? '')).toBe(nextAttemptAtMs(pending));
      await new Operator(environment.client).pause(following.handle.workflowId, 'pollJob');
      const lastResponse = 'the activity pollJob is paused; resume it with `temporal activity unpause`';
      expect(await now()).toMatchObject({ ...counts, nextPollAt: null, lastResponse });

      // An update ends the activity. The reads of the activity are still counted.
      const handle = environment.followUps.getHandle(following.handle.workflowId);
      const polled = { ...counts, polls: polls + 1, responseCounts: { active: polls + 1 } };
      expect(await handle.pollNow()).toMatchObject(polled);
      // An extension ends the activity too, and a single read follows.
      expect(await handle.extendDeadline('2h')).toMatchObject({ phase: 'watching' });
      await eventually('the read after the extension is counted', now, {
        until: (each) => each.polls > polls + 1,
      });
      await following.handle.terminate();
    },
  );

  // Proves L5.
  it.concurrent('counts each read once if an update ends the activity in the meantime', async () => {
    const following = await follow(ENDLESS_TURN, RARE_POLL_OPTIONS);
    await waitForLongBackoff(following);
    const polls = following.readCount() - 1;
    const around = await progressAround(() => following.update('pollNow'), following);
    const responseCounts = { active: polls + 1 };
    expect(around).toMatchObject({ query: 2, progress: { polls: polls + 1, responseCounts } });
    await following.handle.terminate();
  });

  // Proves L5.
  it.concurrent('is the final progress if the follow-up ends in the meantime', async () => {
    const following = await follow(ENDLESS_TURN, { polling: POLL_EVERY_SECOND });
    await waitForAttempt(following, 3);
    const end = () => {
      following.changeJob({ status: 'failed' });
      return following.waitForProgress(({ phase }) => phase === 'done');
    };
    const { progress, describe, query } = await progressAround(end, following);
    const { receipt } = await following.result();
    expect([describe, query]).toEqual([2, 2]);
    const { polls, responseCounts } = receipt;
    expect(progress).toMatchObject({ phase: 'done', polls, responseCounts });
  });

  // Proves L5.
  it.concurrent('needs at most two queries if the follow-up changes all the time', async () => {
    const following = await follow(ENDLESS_TURN, {
      polling: { ...POLL_EVERY_SECOND, timerPolls: 'all', initial: '100ms', maximum: '100ms' },
      maxStaleness: '0s',
    });
    await following.waitForProgress(({ polls }) => polls > 2);
    const { query, progress } = await progressAround(() => Promise.resolve(), following);
    expect(query).toBeLessThanOrEqual(2);
    expect(progress).toMatchObject({ phase: 'watching', delivery: { verdict: 'accepted' } });
    await following.handle.terminate();
  });
});
