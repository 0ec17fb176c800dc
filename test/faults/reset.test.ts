import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from '@jest/globals';
import { type Client, WorkflowExecutionAlreadyStartedError, type WorkflowHandle } from '@temporalio/client';
import type { FollowUpResult } from '../../src/core/result';
import { followUpWorkflowId } from '../../src/core/ids';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { eventually } from '../harness/eventually';
import { failureOf, QUICK } from '../harness/following';
import { House } from '../harness/house';
import { houseOf } from '../harness/house-of';
import { resetWorkflow } from '../harness/reset';
import { temporal } from '../harness/temporal';

const open = houseOf();

let continuing: Promise<{ server: DevServer; house: House }> | undefined;
afterAll(async () => {
  const { server, house } = (await continuing) ?? {};
  await house?.close();
  await server?.stop();
});

/** On a server that suggests to continue as new after a few polls, as every server does after 4,096 events. */
async function quickToContinue(): Promise<House> {
  const start = async () => {
    const dynamicConfig = { 'limit.historyCount.suggestContinueAsNew': 45 };
    const server = await startDevServer({ cli: temporal().cli, searchAttributes: true, dynamicConfig });
    return { server, house: await House.open({ address: server.address }) };
  };
  return (await (continuing ??= start())).house;
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
      const house = await open();
      const following = await house.follow();
      await following.result();
      const again = await resetWorkflow(house.client, following.handle.workflowId, 'send');
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
      const house = await open();
      const following = await house.follow(ENDLESS);
      await following.progressWhen(({ phase }) => phase === 'watching');
      const again = await resetWorkflow(house.client, following.handle.workflowId, 'send');
      const { type, message } = await failureOf(again);
      expect(type).toBe('DeliveryUnknown');
      expect(message).toContain('the job was active before');
      expect(posts(following)).toEqual([true]);
    },
  );

  it.concurrent('after its deadline: it does not say that nothing was sent', async () => {
    const house = await open();
    const following = await house.follow({}, { deadline: '5s' });
    await following.result();
    await sleep(5_000);
    const again = await resetWorkflow(house.client, following.handle.workflowId, 'start');
    const { type, message, details } = await failureOf(again);
    expect(type).toBe('DeadlineExceeded');
    expect(message).not.toContain('Nothing was sent');
    expect(details.followUp.delivery.verdict).toBe('unknown');
  });

  it.concurrent('twice: the run of the second reset sends nothing either', async () => {
    const house = await open();
    const following = await house.follow();
    await following.result();
    const { workflowId } = following.handle;
    for (const point of ['start', 'send'] as const) {
      const again = await resetWorkflow(house.client, workflowId, point);
      expect((await failureOf(again)).type).toBe('DeliveryUnknown');
    }
    expect(posts(following)).toEqual([true]);
  });

  it.concurrent('with resend sends nothing either: that permission is the first run’s', async () => {
    const house = await open();
    const following = await house.follow({}, { onUnknownDelivery: 'resend', reconcile: '500ms' });
    await following.result();
    const again = await resetWorkflow(house.client, following.handle.workflowId, 'send');
    const { type, details } = await failureOf(again);
    expect(type).toBe('DeliveryUnknown');
    expect(details.followUp.delivery).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
    expect(posts(following)).toEqual([true]);
  });

  it.concurrent('with its turn running and assume-delivered is watched to its end', async () => {
    const house = await open();
    const following = await house.follow(ENDLESS, { onUnknownDelivery: 'assume-delivered' });
    await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
    const again = await resetWorkflow(house.client, following.handle.workflowId, 'send');
    await house.sandbox.journal.waitFor({ ...following.key, operation: 'get' }, { atLeast: 5 });
    house.sandbox.changeJob(following.key, { status: 'completed', prLink: 'https://code.test/pull/1' });
    const { status, followUp } = await resultOf(again);
    expect({ status, by: followUp.delivery.confirmedBy, evidence: followUp.evidence }).toEqual({
      ...{ status: 'completed', by: 'assumed', evidence: 'job-changed' },
    });
    expect(posts(following)).toEqual([true]);
  });
});

describe('a follow-up that is reset before its message was sent', () => {
  it.concurrent('ends as DeliveryUnknown, for nobody can tell that it was not', async () => {
    const house = await open();
    const following = await house.follow({ status: 'active', ...ENDLESS }, { whenActive: 'wait' });
    await following.progressWhen(({ phase }) => phase === 'waiting');
    const again = await resetWorkflow(house.client, following.handle.workflowId, 'start');
    house.sandbox.changeJob(following.key, { status: 'completed' });
    expect((await failureOf(again)).type).toBe('DeliveryUnknown');
    expect(posts(following)).toEqual([]);
  });
});

describe('a follow-up that is started again', () => {
  it.concurrent('twenty times at once is one follow-up with one POST', async () => {
    const house = await open();
    const key = { projectId: 'twenty', jobId: 'starts' };
    house.sandbox.addJob({ projectId: key.projectId, id: key.jobId });
    const request = { ...key, prompt: 'Fix the broken links.', requestId: 'one', ...QUICK };
    const workflowId = followUpWorkflowId(key.projectId, key.jobId, 'one');
    const started = await Promise.all(Array.from({ length: 20 }, () => house.start(workflowId, request)));
    const results = await Promise.all(started.map((handle) => resultOf(handle)));
    expect(new Set(started.map((handle) => handle.firstExecutionRunId)).size).toBe(1);
    expect(new Set(results.map(({ followUp }) => followUp.settledAt)).size).toBe(1);
    expect(results[0]?.followUp.delivery).toEqual({ verdict: 'accepted', confirmedBy: 'response', sends: 1 });
    expect(posts({ posts: () => house.sandbox.journal.entries({ ...key, operation: 'message' }) })).toEqual([
      true,
    ]);
  });

  it.concurrent('after its end is refused by the server, and nothing is sent', async () => {
    const house = await open();
    const following = await house.follow();
    await following.result();
    await expect(house.start(following.handle.workflowId, following.request)).rejects.toBeInstanceOf(
      WorkflowExecutionAlreadyStartedError,
    );
    expect(posts(following)).toEqual([true]);
  });
});

describe('a run that continues a reset one as new', () => {
  it.concurrent('has no message to send, and watches on when it is itself reset', async () => {
    const house = await quickToContinue();
    // Polls by timers fill the history that a patient read would keep short.
    const polling = { ...QUICK.polling, timerPolls: 'all' } as const;
    const asked = { deadline: '60s', polling, onUnknownDelivery: 'assume-delivered' } as const;
    const following = await house.follow(ENDLESS, asked);
    const { workflowId } = following.handle;
    await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
    const reset = await resetWorkflow(house.client, workflowId, 'send');
    const latest = house.client.workflow.getHandle(workflowId);
    const resetRunId = (await latest.describe()).runId;
    expect((await reset.describe()).runId).toBe(resetRunId);

    await following.progressWhen(({ polls }) => polls > 10);
    const continuedRunId = (await latest.describe()).runId;
    expect(continuedRunId).not.toBe(resetRunId);
    expect(await firstInput(house.client, workflowId, continuedRunId)).toContain('"continued"');
    expect(await firstInput(house.client, workflowId, continuedRunId)).not.toContain(
      following.request.prompt,
    );

    const again = await resetWorkflow(house.client, workflowId, 'start');
    house.sandbox.changeJob(following.key, { status: 'completed' });
    expect((await resultOf(again)).followUp.delivery).toEqual(ASSUMED);
    expect(posts(following)).toEqual([true]);
  });

  it.concurrent('is never made while a reset one asks whether its message arrived', async () => {
    const house = await quickToContinue();
    const polling = { ...QUICK.polling, timerPolls: 'all' } as const;
    const following = await house.follow(ENDLESS, { deadline: '60s', polling, onUnknownDelivery: 'ask' });
    await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
    const reset = await resetWorkflow(house.client, following.handle.workflowId, 'send');
    const { runId } = await reset.describe();
    const latest = house.client.workflow.getHandle(following.handle.workflowId);
    await eventually('a long history', async () => (await latest.describe()).historyLength > 60);
    expect((await latest.describe()).runId).toBe(runId);
    await latest.executeUpdate('resolveDelivery', { args: ['delivered'] });
    house.sandbox.changeJob(following.key, { status: 'completed' });
    expect((await resultOf(reset)).followUp.delivery.confirmedBy).toBe('operator');
    expect(posts(following)).toEqual([true]);
  });
});

async function firstInput(client: Client, workflowId: string, runId: string): Promise<string> {
  const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  const { input } = events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
  return (input?.payloads ?? []).map(({ data }) => Buffer.from(data ?? []).toString()).join();
}
