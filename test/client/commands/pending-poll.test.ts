import { describe, expect, it } from '@jest/globals';
import type { FollowUpProgress } from '../../../src/core/result';
import { sharedEnvironment } from '../../harness/shared-environment';
import { pendingRead, SOON, untilAttempt, untilItWaits } from '../../harness/pending-poll';
import { starter } from './starter';

const open = sharedEnvironment({ inProcessPolls: 0 });

/** A follow-up whose turn ends only when the test says so. */
async function followed() {
  const environment = await open();
  const following = await environment.follow(
    { turn: { durationMs: null } },
    { polling: SOON, deadline: '10m' },
  );
  const run = (...args: string[]) => starter(environment, args);
  return { environment, following, workflowId: following.handle.workflowId, run };
}

describe('while an activity polls by its own retries', () => {
  it.concurrent('status shows what it has counted and when it reads next', async () => {
    const { environment, following, workflowId, run } = await followed();
    await untilItWaits(environment.sandbox, following);
    const polls = following.gets() - 1;
    const { stdout } = await run('status', workflowId);
    expect(stdout).toMatch(/^phase +watching$/m);
    expect(stdout).toMatch(/^last answer +http 429/m);
    expect(stdout).toMatch(new RegExp(`^polls +${polls} \\(active × ${polls - 1}, http 429 × 1\\)$`, 'm'));
    expect(stdout).toMatch(/^next read +20\S+Z \(in (1m|2m|5\ds).*\)$/m);
    const json = JSON.parse((await run('status', workflowId, '--json')).stdout) as {
      progress: FollowUpProgress;
    };
    expect(json.progress).toMatchObject({ polls, observed: { active: polls - 1, 'http 429': 1 } });
    expect(stdout).toContain(json.progress.nextPollAt);
    await following.handle.terminate();
  });

  it.concurrent('poll-now and extend answer with them too', async () => {
    const { environment, following, workflowId, run } = await followed();
    await untilItWaits(environment.sandbox, following);
    const polled = await run('poll-now', workflowId);
    const polls = following.gets() - 1;
    expect(polled.stdout).toMatch(/^last answer +active$/m);
    const counts = new RegExp(`^polls +${polls} \\(active × ${polls - 1}, http 429 × 1\\)$`, 'm');
    expect(polled.stdout).toMatch(counts);
    expect((await run('extend', workflowId, '3h')).stdout).toMatch(counts);
    await following.handle.terminate();
  });

  it.concurrent(
    'watch shows the trouble that it absorbs, how often it has read, and what comes next',
    async () => {
      const { environment, following, workflowId, run } = await followed();
      await untilAttempt(following, 2);
      const watching = run('watch', workflowId);
      environment.sandbox.setFault({ name: 'http-503', ...following.key, operation: 'get' });
      await environment.sandbox.journal.waitFor({ ...following.key, fault: 'http-503' }, { atLeast: 2 });
      expect(await pendingRead(following)).toBeDefined();
      environment.sandbox.clearFaults(following.key);
      environment.sandbox.changeJob(following.key, { status: 'failed' });
      const { code, stderr } = await watching;
      expect(code).toBe(11);
      expect(stderr).toMatch(
        /^\S+Z watching · http 503.* \(job was active\) · poll \d+ · next (now|in \ds) · /m,
      );
    },
  );
});
