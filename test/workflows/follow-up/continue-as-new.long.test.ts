import { expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/client';
import { planOf } from '../../../src/client/start';
import { followUpWorkflowId } from '../../../src/core/ids';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import { compareRequests } from '../../../src/temporal/existing-run';
import { BatchOfTest, forget, REJECTED_ONCE } from '../../harness/batch-of-test';
import { payloadText } from '../../harness/encryption';
import { eventually } from '../../harness/eventually';
import { BY_RESPONSE, ENDLESS, type Following, QUICK } from '../../harness/following';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

/** Every poll by a timer of its own, so that history grows fast. */
const BY_TIMERS = { polling: { ...QUICK.polling, timerPolls: 'all' } } as const;

// So low that a watch of some polls reaches it, as a long one reaches the default of 4,096 events.
const { open } = sharedEnvironment({ dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 45 } });

/** The input of the latest run, which another one has handed over. */
async function expectNoMessageHandedOver({ handle }: Following, prompt: string): Promise<void> {
  const [first] = await eventsOf(handle.client.getHandle(handle.workflowId));
  const input = first?.workflowExecutionStartedEventAttributes?.input?.payloads?.map(payloadText).join();
  expect(input).toContain('continued');
  expect(input).not.toContain(prompt);
}

// Proves T4.
it.concurrent(
  'a follow-up whose history grows continues as new in the watch, carries all but the message with it, and sends nothing again',
  async () => {
    const environment = await open();
    const following = await environment.follow(ENDLESS, { prompt: 'never again', ...BY_TIMERS });
    await following.progressWhen(({ polls }) => polls >= 8);
    expect((await following.handle.describe()).runId).not.toBe(following.firstRunId);
    await expectNoMessageHandedOver(following, 'never again');
    following.changeJob({ status: 'completed', prLink: 'https://example.test/pull/1' });
    const { prLink, followUp } = await following.result();
    expect(prLink).toBe('https://example.test/pull/1');
    const { requestId } = following.request;
    const baseline = { status: 'completed' };
    expect(followUp).toMatchObject({ requestId, delivery: BY_RESPONSE, evidence: 'seen-active', baseline });
    expect(followUp.polls).toBe((followUp.observed.active ?? 0) + 1);
    expect(followUp.polls).toBeGreaterThanOrEqual(9);
    expect(following.processed()).toEqual([true]);
  },
);

it.concurrent(
  'a follow-up whose history grows is attached to, compared and waited for when it has continued as new',
  async () => {
    const environment = await open();
    const asked = { ...environment.newRequest(ENDLESS), ...BY_TIMERS };
    const other = { ...asked, prompt: 'Something else.' };
    const { followUps } = environment;
    const { workflowId, runId: firstRun } = await followUps.start(asked);
    const result = followUps.getHandle(workflowId).result();
    const currentRun = async (): Promise<string> => (await followUps.getHandle(workflowId).describe()).runId;
    await eventually('it continues as new', currentRun, { until: (runId) => runId !== firstRun });

    expect(await followUps.start({ ...asked, whenActive: 'wait' })).toMatchObject({
      attached: 'running',
      differences: ['whenActive is send there, not wait'],
      promptCompared: true,
    });
    await expect(followUps.start(other)).rejects.toThrow(ConflictError);

    // What remains to compare by when retention has taken the first run. (A deletion takes the dev server half a minute.)
    const { memo } = await environment.client.workflow.getHandle(workflowId).describe();
    expect(compareRequests(planOf(asked), undefined, memo)).toMatchObject({ differences: [] });
    expect(compareRequests(planOf(other), undefined, memo)).toBeNull();

    environment.sandbox.changeJob(asked, { status: 'completed' });
    expect(await result).toMatchObject({ status: 'completed', followUp: { requestId: asked.requestId } });
  },
);

/** How the first two runs end of a workflow that gets a state of nobody: by a cron schedule, as by continue-as-new. */
async function endsOfRunsWith(type: string, workflowId: string) {
  const { client, taskQueue } = await open();
  const options = { workflowId, taskQueue, args: [{ continued: {} }], cronSchedule: '@every 1s' };
  const { firstExecutionRunId } = await client.workflow.start(type, options);
  /** Not by the client, which does not tell the end of a run that another one follows. */
  const endOf = (runId: string | undefined) =>
    eventually('the run has ended', async () => {
      const last = (await eventsOf(client.workflow.getHandle(workflowId, runId))).at(-1);
      return last?.workflowExecutionFailedEventAttributes;
    });
  const first = await endOf(firstExecutionRunId);
  const second = await endOf(first.newExecutionRunId ?? undefined);
  await client.workflow.getHandle(workflowId).terminate();
  return [first, second].map(({ failure }) => ({
    ...{ message: failure?.message, type: failure?.applicationFailureInfo?.type },
    details: failure?.applicationFailureInfo?.details?.payloads?.map(payloadText).join(),
  }));
}

// Proves D3.
it.concurrent(
  'a run that was handed what it does not know ends without saying that nothing was sent',
  async () => {
    const workflowId = followUpWorkflowId('docs', 'job-1', 'handed-over');
    const [first, second] = await endsOfRunsWith(FOLLOW_UP_WORKFLOW, workflowId);
    expect([first?.type, second?.type]).toEqual(['InvalidRequest', 'InvalidRequest']);
    expect(first?.message).toMatch(/^Nothing was sent\. /);
    expect(first?.details).toContain('"verdict":"not-sent"');
    expect(second?.message).toMatch(/^Nobody can tell whether the message arrived\. /);
    expect(second?.details).toContain('"verdict":"unknown"');
  },
);

it.concurrent(
  'a batch that was handed what it does not know is refused, and does not fail its tasks for ever',
  async () => {
    const ends = await endsOfRunsWith(BATCH_WORKFLOW, 'follow-up-batch:handed-over');
    expect(ends.map(({ type }) => type)).toEqual(['InvalidBatch', 'InvalidBatch']);
  },
);

// Proves B12.
it.concurrent(
  'a batch whose history grows continues as new; its results and its retry outlive its first run',
  async () => {
    const environment = await open();
    const batch = new BatchOfTest(environment);
    const turn = { reads: 1 };
    batch.add({ turn }, {}, REJECTED_ONCE);
    batch.addMany(24, { turn });
    const { workflowId } = await batch.start({ concurrency: 1, tolerate: { items: 1 } });
    const { runId: firstRunId } = await batch.handle.progress();
    // Its items cost it no events; its operators do.
    for (let times = 0; times < 6; times += 1) {
      await batch.handle.pause();
      await batch.handle.resume();
    }
    await batch.handle.pause();
    const pending = async () => (await batch.workflow.describe()).raw.pendingActivities ?? [];
    await eventually('nothing of it runs', pending, { until: ({ length }) => length === 0 });
    await batch.handle.setConcurrency(4);
    await batch.handle.resume();
    const summary = { settled: 25, byStatus: { completed: 24 }, byFailure: { FollowUpRejected: 1 } };
    expect(await batch.handle.result()).toMatchObject({ state: 'done', summary });
    const handle = environment.client.workflow.getHandle(workflowId);
    expect((await handle.describe()).runId).not.toBe(firstRunId);
    await forget(handle, firstRunId);
    expect(await batch.handle.settled()).toHaveLength(25);
    await batch.handle.retry();
    const after = { byStatus: { completed: 25 }, byFailure: {} };
    expect((await batch.handle.result()).summary).toMatchObject(after);
    expect(batch.posts()).toHaveLength(26);
  },
);
