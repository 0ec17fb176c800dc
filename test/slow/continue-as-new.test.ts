import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { FollowUpClient } from '../../src/client';
import type { DevServer } from '../../dev/dev-server';
import { payloadText } from '../harness/encryption';
import { eventually } from '../harness/eventually';
import { forget } from '../harness/batch-of-test';
import { startForgetfulServer } from '../harness/forgetful-server';
import { Environment, QUICK } from '../harness/environment';

/** Every poll by a timer of its own, so that history grows fast. */
const byTimers = { ...QUICK.polling, timerPolls: 'all' } as const;

let server: DevServer;
let environment: Environment;

beforeAll(async () => {
  // So low that a watch of some polls reaches it, as a long one reaches the default of 4,096 events.
  server = await startForgetfulServer({ 'limit.historyCount.suggestContinueAsNew': 45 });
  environment = await Environment.open({ address: server.address, pollLimitMs: 4_000 });
});
afterAll(async () => {
  await environment.close();
  await server.stop();
});

describe('a follow-up whose history grows', () => {
  it('continues as new in the watch, carries everything with it, and sends nothing again', async () => {
    const following = await environment.follow({ turn: { durationMs: null } }, { polling: byTimers });
    const firstRun = (await following.handle.describe()).runId;
    await following.progressWhen(({ polls }) => polls >= 8);
    const before = await following.handle.describe();
    expect(before.runId).not.toBe(firstRun);
    environment.sandbox.changeJob(following.key, {
      status: 'completed',
      prLink: 'https://example.test/pull/1',
    });

    const { prLink, followUp } = await following.result();
    expect(prLink).toBe('https://example.test/pull/1');
    expect(followUp).toMatchObject({
      requestId: following.request.requestId,
      delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
      evidence: 'seen-active',
      baseline: { status: 'completed' },
    });
    expect(followUp.polls).toBe((followUp.observed.active ?? 0) + 1);
    expect(followUp.polls).toBeGreaterThanOrEqual(9);
    expect(following.processed()).toBe(1);
  });

  it('continues as new between two patiences, and counts what both have read', async () => {
    const polling = { initial: '1s', growth: 0, maximum: '1s', jitter: 0, timerPolls: 2 } as const;
    const asked = { polling, deadline: '60s' } as const;
    const following = await environment.follow({ turn: { durationMs: null } }, asked);
    await following.progressWhen(({ polls }) => polls >= 8);
    expect((await following.handle.describe()).runId).not.toBe(following.firstRunId);
    environment.sandbox.changeJob(following.key, { status: 'failed' });
    const { followUp } = await following.result();
    expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
    expect(followUp.polls).toBe(following.gets() - 1);
  });

  it('continues as new without a request id: its workflow id is its name', async () => {
    const { projectId, jobId } = environment.sandbox.addJob({ turn: { durationMs: null } });
    const handle = await environment.start('nightly/7', {
      projectId,
      jobId,
      prompt: 'x',
      ...QUICK,
      polling: byTimers,
    });
    await eventually(
      'it has continued as new',
      async () => (await handle.describe()).runId !== handle.firstExecutionRunId,
    );
    environment.sandbox.changeJob({ projectId, jobId }, { status: 'failed' });
    expect(await environment.client.workflow.getHandle('nightly/7').result()).toMatchObject({
      ...{ status: 'failed', followUp: { requestId: 'nightly/7', delivery: { verdict: 'accepted' } } },
    });
  });

  it('hands over no message', async () => {
    const following = await environment.follow(
      { turn: { durationMs: null } },
      { prompt: 'never again', polling: byTimers },
    );
    const firstRun = (await following.handle.describe()).runId;
    await following.progressWhen(({ polls }) => polls >= 6);
    const { runId } = await following.handle.describe();
    expect(runId).not.toBe(firstRun);
    const { events } = await environment.client.workflow
      .getHandle(following.handle.workflowId, runId)
      .fetchHistory();
    const { input } = events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
    const started = JSON.stringify(input?.payloads?.map(payloadText));
    expect(started).toContain('continued');
    expect(started).not.toContain('never again');
    await following.handle.terminate();
  });

  it('waits before the send without continuing as new, so that a reset can still be told', async () => {
    const following = await environment.follow(
      { status: 'active', turn: { durationMs: null } },
      { whenActive: 'wait', deadline: '60s', polling: byTimers },
    );
    const firstRun = (await following.handle.describe()).runId;
    await following.progressWhen(({ phase }) => phase === 'waiting');
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'get' }, { atLeast: 8 });
    const description = await following.handle.describe();
    expect(description.historyLength).toBeGreaterThan(45);
    expect(description.runId).toBe(firstRun);
    await following.handle.terminate();
  });
});

describe('a batch whose history grows', () => {
  it('continues as new; its results and its retry outlive its first run', async () => {
    const { batches } = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
    const requests = Array.from({ length: 25 }, () => {
      const { projectId, jobId } = environment.sandbox.addJob({
        projectId: 'batch',
        turn: { durationMs: 300 },
      });
      return { ...QUICK, projectId, jobId, prompt: 'Rebase on main.' };
    });
    const [rejected] = requests;
    const once = { operation: 'message', times: 1 } as const;
    environment.sandbox.setFault({
      name: 'status',
      projectId: 'batch',
      jobId: rejected?.jobId ?? '',
      ...once,
      parameters: { code: 422 },
    });
    await batches.start(await batches.check(requests, { batchId: 'long' }), {
      concurrency: 4,
      tolerate: { items: 1 },
    });
    const { state, summary } = await batches.getHandle('long').result();
    expect({ state, summary }).toMatchObject({
      state: 'done',
      summary: { items: 25, settled: 25, byStatus: { completed: 24 }, byFailure: { FollowUpRejected: 1 } },
    });
    const { workflowId, firstRunId } = await batches.getHandle('long').describe();
    const handle = environment.client.workflow.getHandle(workflowId);
    expect((await handle.describe()).runId).not.toBe(firstRunId);
    await forget(handle, firstRunId);
    expect(await batches.getHandle('long').settled()).toHaveLength(25);
    await batches.getHandle('long').retry();
    expect((await batches.getHandle('long').result()).summary).toMatchObject({
      byStatus: { completed: 25 },
      byFailure: {},
    });
    expect(environment.sandbox.journal.entries({ projectId: 'batch', operation: 'message' })).toHaveLength(
      26,
    );
  });
});
