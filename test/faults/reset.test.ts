import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from '@jest/globals';
import { type Client, WorkflowExecutionAlreadyStartedError, type WorkflowHandle } from '@temporalio/client';
import type { FollowUpProgress, FollowUpResult } from '../../src/core/result';
import { followUpWorkflowId } from '../../src/core/ids';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { eventually } from '../harness/eventually';
import { failureOf, QUICK } from '../harness/following';
import { Environment } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';
import { resetToEvent, resetWorkflow } from '../harness/reset';
import { temporal } from '../harness/temporal';

const open = sharedEnvironment();

let continuing: Promise<{ server: DevServer; environment: Environment }> | undefined;
afterAll(async () => {
  const { server, environment } = (await continuing) ?? {};
  await environment?.close();
  await server?.stop();
});

/** On a server that suggests to continue as new after a few polls, as every server does after 4,096 events. */
async function quickToContinue(): Promise<Environment> {
  const start = async () => {
    const dynamicConfig = { 'limit.historyCount.suggestContinueAsNew': 45 };
    const server = await startDevServer({ cli: temporal().cli, searchAttributes: true, dynamicConfig });
    return { server, environment: await Environment.open({ address: server.address }) };
  };
  return (await (continuing ??= start())).environment;
}

const ENDLESS = { turn: { durationMs: null } };
const ASSUMED = { verdict: 'accepted', confirmedBy: 'assumed', sends: 1 };

/** Processed or not, as the service saw each POST. */
function posts(following: { posts: () => { processed: boolean }[] }): boolean[] {
  return following.posts().map(({ processed }) => processed);
}

async function resultOf(handle: WorkflowHandle): Promise<FollowUpResult> {
  return (await handle.result()) as FollowUpResult;
}

describe('a follow-up that is reset after its message was accepted', () => {
  it.concurrent(
    'to before the send, with its turn over: it ends as DeliveryUnknown, and nothing is sent',
    async () => {
      const environment = await open();
      const following = await environment.follow();
      await following.result();
      const again = await resetWorkflow(environment.client, following.handle.workflowId, 'send');
      const { type, message, details } = await failureOf(again);
      expect(type).toBe('DeliveryUnknown');
      expect(message).toContain('this run was reset to a point before its send');
      expect(details.followUp.delivery).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
      expect(posts(following)).toEqual([true]);
    },
  );

  it.concurrent(
    'to before the send, with its turn running: it ends as DeliveryUnknown, and nothing is sent',
    async () => {
      const environment = await open();
      const following = await environment.follow(ENDLESS);
      await following.progressWhen(({ phase }) => phase === 'watching');
      const again = await resetWorkflow(environment.client, following.handle.workflowId, 'send');
      const { type, message } = await failureOf(again);
      expect(type).toBe('DeliveryUnknown');
      expect(message).toContain('the job was active before');
      expect(posts(following)).toEqual([true]);
    },
  );

  it.concurrent('after its deadline: it does not say that nothing was sent', async () => {
    const environment = await open();
    const following = await environment.follow({}, { deadline: '5s' });
    await following.result();
    await sleep(5_000);
    const again = await resetWorkflow(environment.client, following.handle.workflowId, 'start');
    const { type, message, details } = await failureOf(again);
    expect(type).toBe('DeadlineExceeded');
    expect(message).not.toContain('Nothing was sent');
    expect(details.followUp.delivery.verdict).toBe('unknown');
  });

  it.concurrent('twice: the run of the second reset sends nothing either', async () => {
    const environment = await open();
    const following = await environment.follow();
    await following.result();
    const { workflowId } = following.handle;
    for (const point of ['start', 'send'] as const) {
      const again = await resetWorkflow(environment.client, workflowId, point);
      expect((await failureOf(again)).type).toBe('DeliveryUnknown');
    }
    expect(posts(following)).toEqual([true]);
  });

  it.concurrent('with resend sends nothing either: that permission is the first run’s', async () => {
    const environment = await open();
    const following = await environment.follow({}, { onUnknownDelivery: 'resend', reconcile: '500ms' });
    await following.result();
    const again = await resetWorkflow(environment.client, following.handle.workflowId, 'send');
    const { type, details } = await failureOf(again);
    expect(type).toBe('DeliveryUnknown');
    expect(details.followUp.delivery).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
    expect(posts(following)).toEqual([true]);
  });

  it.concurrent('with its turn running and assume-delivered is watched to its end', async () => {
    const environment = await open();
    const following = await environment.follow(ENDLESS, { onUnknownDelivery: 'assume-delivered' });
    await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
    const again = await resetWorkflow(environment.client, following.handle.workflowId, 'send');
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'get' }, { atLeast: 5 });
    environment.sandbox.changeJob(following.key, { status: 'completed', prLink: 'https://code.test/pull/1' });
    const { status, followUp } = await resultOf(again);
    expect({ status, by: followUp.delivery.confirmedBy, evidence: followUp.evidence }).toEqual({
      ...{ status: 'completed', by: 'assumed', evidence: 'job-changed' },
    });
    expect(posts(following)).toEqual([true]);
  });
});

describe('a follow-up that is reset after a second POST was allowed', () => {
  it.concurrent.each([
    ['by an operator', 'ask'],
    ['by the caller', 'resend'],
  ] as const)('%s goes on, and sends nothing more', async (_, onUnknownDelivery) => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'sent-twice', ...ENDLESS });
    environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message', times: 1 });
    const asked = { onUnknownDelivery, reconcile: '500ms', deadline: '60s' } as const;
    const following = await environment.send({ projectId, jobId, ...asked });
    const { workflowId } = following.handle;
    if (onUnknownDelivery === 'ask') {
      await following.progressWhen(({ phase }) => phase === 'needs-decision');
      await following.handle.executeUpdate('resolveDelivery', { args: ['not-delivered'] });
    }
    await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
    const { events } = await following.handle.fetchHistory();
    const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
    const runId = await resetToEvent(environment.client, workflowId, tasks.at(-1)?.eventId ?? null);
    environment.sandbox.changeJob({ projectId, jobId }, { status: 'completed' });
    const { status, followUp } = await resultOf(environment.client.workflow.getHandle(workflowId, runId));
    expect(status).toBe('completed');
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 2 });
    expect(posts(following)).toEqual([false, true]);
  });
});

describe('a follow-up that is reset to behind a POST that was not answered', () => {
  it.concurrent('counts that POST once', async () => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'counted-once' });
    environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message' });
    const asked = { onUnknownDelivery: 'ask', reconcile: '500ms', deadline: '60s' } as const;
    const following = await environment.send({ projectId, jobId, ...asked });
    await following.progressWhen(({ phase }) => phase === 'needs-decision');
    const { events } = await following.handle.fetchHistory();
    const tasks = (events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes);
    const { workflowId } = following.handle;
    const runId = await resetToEvent(environment.client, workflowId, tasks.at(-1)?.eventId ?? null);
    const again = environment.client.workflow.getHandle(workflowId, runId);
    await eventually('it asks again', async () => {
      const { phase } = await again.query<FollowUpProgress>('progress');
      return phase === 'needs-decision';
    });
    await again.executeUpdate('resolveDelivery', { args: ['delivered'] });
    const { followUp } = await resultOf(again);
    expect(followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'operator', sends: 1 });
    expect(posts(following)).toEqual([false]);
  });
});

describe('a follow-up that is reset before its message was sent', () => {
  it.concurrent('ends as DeliveryUnknown, for nobody can tell that it was not', async () => {
    const environment = await open();
    const following = await environment.follow({ status: 'active', ...ENDLESS }, { whenActive: 'wait' });
    await following.progressWhen(({ phase }) => phase === 'waiting');
    const again = await resetWorkflow(environment.client, following.handle.workflowId, 'start');
    environment.sandbox.changeJob(following.key, { status: 'completed' });
    expect((await failureOf(again)).type).toBe('DeliveryUnknown');
    expect(posts(following)).toEqual([]);
  });
});

describe('a follow-up that is started again', () => {
  it.concurrent('twenty times at once is one follow-up with one POST', async () => {
    const environment = await open();
    const key = { projectId: 'twenty', jobId: 'starts' };
    environment.sandbox.addJob({ projectId: key.projectId, id: key.jobId });
    const request = { ...key, prompt: 'Fix the broken links.', requestId: 'one', ...QUICK };
    const workflowId = followUpWorkflowId(key.projectId, key.jobId, 'one');
    const started = await Promise.all(
      Array.from({ length: 20 }, () => environment.start(workflowId, request)),
    );
    const results = await Promise.all(started.map((handle) => resultOf(handle)));
    expect(new Set(started.map((handle) => handle.firstExecutionRunId)).size).toBe(1);
    expect(new Set(results.map(({ followUp }) => followUp.settledAt)).size).toBe(1);
    expect(results[0]?.followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 1 });
    expect(
      posts({ posts: () => environment.sandbox.journal.entries({ ...key, operation: 'message' }) }),
    ).toEqual([true]);
  });

  it.concurrent('after its end is refused by the server, and nothing is sent', async () => {
    const environment = await open();
    const following = await environment.follow();
    await following.result();
    await expect(environment.start(following.handle.workflowId, following.request)).rejects.toBeInstanceOf(
      WorkflowExecutionAlreadyStartedError,
    );
    expect(posts(following)).toEqual([true]);
  });
});

describe('a run that continues a reset one as new', () => {
  it.concurrent('has no message to send, and watches on when it is itself reset', async () => {
    const environment = await quickToContinue();
    // Polls by timers fill the history that a patient read would keep short.
    const polling = { ...QUICK.polling, timerPolls: 'all' } as const;
    const asked = { deadline: '60s', polling, onUnknownDelivery: 'assume-delivered' } as const;
    const following = await environment.follow(ENDLESS, asked);
    const { workflowId } = following.handle;
    await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
    const reset = await resetWorkflow(environment.client, workflowId, 'send');
    const latest = environment.client.workflow.getHandle(workflowId);
    const resetRunId = (await latest.describe()).runId;
    expect((await reset.describe()).runId).toBe(resetRunId);

    await following.progressWhen(({ polls }) => polls > 10);
    const continuedRunId = (await latest.describe()).runId;
    expect(continuedRunId).not.toBe(resetRunId);
    expect(await firstInput(environment.client, workflowId, continuedRunId)).toContain('"continued"');
    expect(await firstInput(environment.client, workflowId, continuedRunId)).not.toContain(
      following.request.prompt,
    );

    const again = await resetWorkflow(environment.client, workflowId, 'start');
    environment.sandbox.changeJob(following.key, { status: 'completed' });
    expect((await resultOf(again)).followUp.delivery).toEqual(ASSUMED);
    expect(posts(following)).toEqual([true]);
  });

  it.concurrent('is never made while a reset one asks whether its message arrived', async () => {
    const environment = await quickToContinue();
    const polling = { ...QUICK.polling, timerPolls: 'all' } as const;
    const following = await environment.follow(ENDLESS, {
      deadline: '60s',
      polling,
      onUnknownDelivery: 'ask',
    });
    await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
    const reset = await resetWorkflow(environment.client, following.handle.workflowId, 'send');
    const { runId } = await reset.describe();
    const latest = environment.client.workflow.getHandle(following.handle.workflowId);
    await eventually('a long history', async () => (await latest.describe()).historyLength > 60);
    expect((await latest.describe()).runId).toBe(runId);
    await latest.executeUpdate('resolveDelivery', { args: ['delivered'] });
    environment.sandbox.changeJob(following.key, { status: 'completed' });
    expect((await resultOf(reset)).followUp.delivery.confirmedBy).toBe('operator');
    expect(posts(following)).toEqual([true]);
  });
});

async function firstInput(client: Client, workflowId: string, runId: string): Promise<string> {
  const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  const { input } = events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
  return (input?.payloads ?? []).map(({ data }) => Buffer.from(data ?? []).toString()).join();
}
