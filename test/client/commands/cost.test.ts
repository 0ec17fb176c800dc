import { describe, expect, it } from '@jest/globals';
import { sharedEnvironment } from '../../harness/shared-environment';
import { starter } from './starter';

const open = sharedEnvironment();

describe('cost', () => {
  it.concurrent('tells what a follow-up that ended has cost, as a table', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { durationMs: 300 } });
    const { followUp } = await following.result();
    const { handle } = following;
    const { historyLength, historySize = 0 } = await handle.describe();

    const { code, stdout, stderr } = await starter(environment, ['cost', handle.workflowId]);

    expect(code).toBe(0);
    expect(stdout).toMatch(/^state +completed$/m);
    expect(stdout).toMatch(/^runs +1$/m);
    expect(stdout).toMatch(new RegExp(`^history events +${historyLength}$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^history bytes +${historySize.toLocaleString('en-US')}$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^polls +${followUp.polls}$`, 'm'));
    expect(stdout).toMatch(/^billable actions +\d+$/m);
    expect(stdout).toMatch(/^ {2}workflow starts +1$/m);
    expect(stdout).toMatch(/^ {2}search attribute upserts +\d$/m);
    // What a follow-up has none of is not listed.
    expect(stdout).not.toContain('signals');
    expect(stderr).toMatch(
      /^Billed but not counted, because no history shows it:\n {2}- queries.*\n {2}- heartbeats/,
    );
  });

  it.concurrent('tells what a running one has cost so far, as one JSON document', async () => {
    const environment = await open();
    const { handle, progressWhen } = await watched(environment);
    const { polls } = await progressWhen();

    const { code, stdout } = await starter(environment, ['cost', handle.workflowId, '--json']);

    expect(code).toBe(0);
    const found = JSON.parse(stdout) as { polls: number; actions: Record<string, number> };
    expect(found).toMatchObject({
      workflowId: handle.workflowId,
      state: 'running',
      runs: 1,
      earlierRunsGone: false,
      actions: { starts: 1, localActivities: 1, signals: 0 },
      notCounted: expect.arrayContaining([expect.stringContaining('heartbeats')]),
    });
    expect(found.polls).toBeGreaterThanOrEqual(polls);
    const { total, ...kinds } = found.actions;
    expect(total).toBe(Object.values(kinds).reduce((sum, count) => sum + count, 0));
  });

  it.concurrent(
    'exits with 0 for a follow-up that failed, for it tells of cost and not of the end',
    async () => {
      const environment = await open();
      const { handle } = await environment.send({ projectId: 'nowhere', jobId: 'nobody' });
      await handle.result().catch(() => undefined);

      const { code, stdout } = await starter(environment, ['cost', handle.workflowId]);

      expect(code).toBe(0);
      expect(stdout).toMatch(/^state +failed$/m);
      expect(stdout).toMatch(/^polls +0$/m);
    },
  );

  it.concurrent('says so when nobody can tell the polls', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { durationMs: null } });
    await following.handle.terminate('a test');

    const { code, stdout } = await starter(environment, ['cost', following.handle.workflowId]);

    expect(code).toBe(0);
    expect(stdout).toMatch(/^polls +unknown: no receipt/m);
  });
});

/** A follow-up whose turn ends only when the test says so, and its progress once it was polled. */
async function watched(environment: Awaited<ReturnType<typeof open>>) {
  const following = await environment.follow({ turn: { durationMs: null } });
  return { handle: following.handle, progressWhen: () => following.progressWhen(({ polls }) => polls > 0) };
}
