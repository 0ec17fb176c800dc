import { expect, it } from '@jest/globals';
import { startDevServer } from '../../../tools/lib/dev-server';
import { ConflictError, type FollowUpDescription } from '../../../src/entries/client';
import { followUpWorkflowId } from '../../../src/contract/ids';
import { FOLLOW_UP_WORKFLOW } from '../../../src/contract/names';
import { TestBatch } from '../../harness/test-batch';
import { Environment } from '../../harness/environment';
import { eventually } from '../../../tools/lib/eventually';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN, FAST_OPTIONS } from '../../harness/follow-up-under-test';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';
import { DYNAMIC_CONFIG, temporal } from '../../harness/temporal';
import { collectAll } from '../../harness/workflow-ids';
import { TemporalGate } from '../../harness/temporal-gate';

const textOf = ({ data }: { data?: Uint8Array | null }) => Buffer.from(data ?? []).toString();

// The value is so low that a watch of a few polls reaches it, as a long watch reaches the default of 4,096 events.
const SUGGESTED_SOON = { 'limit.historyCount.suggestContinueAsNew': 45 };
const { open } = sharedEnvironment({ dynamicConfig: SUGGESTED_SOON });

// Proves T4.
it.concurrent(
  'after a follow-up has continued as new, a client attaches to it, compares the prompt, and receives the result',
  async () => {
    const environment = await open();
    const { followUps, client } = environment;
    // Each poll has its own timer, so that the history grows fast.
    const polling = { ...FAST_OPTIONS.polling, timerPolls: 'all' } as const;
    const request = { ...environment.newRequest(ENDLESS_TURN), polling };
    const { workflowId, runId: firstRun } = await followUps.start(request);
    const handle = followUps.getHandle(workflowId);
    const result = handle.result();
    const currentRun = async () => (await handle.describe()).runId;
    await eventually('the follow-up has continued as new', currentRun, {
      until: (runId) => runId !== firstRun,
    });
    const [started] = await eventsOf(client.workflow.getHandle(workflowId));
    const input = started?.workflowExecutionStartedEventAttributes?.input?.payloads?.map(textOf).join();
    expect(input).toContain('continued');
    expect(input).not.toContain(request.prompt);

    expect(await followUps.start(request)).toMatchObject({ attached: 'running', promptCompared: true });
    await expect(followUps.start({ ...request, prompt: 'Another.' })).rejects.toThrow(ConflictError);

    environment.sandbox.changeJob(request, { status: 'completed' });
    const receipt = { delivery: ACCEPTED_BY_RESPONSE, evidence: 'seen-active' };
    expect(await result).toMatchObject({ status: 'completed', receipt });
    expect(environment.posts(request)).toHaveLength(1);
    const { projectId } = request;
    const list = () => collectAll(followUps.list({ projectId }));
    const isEnded = (found: readonly FollowUpDescription[]) => found[0]?.state === 'completed';
    const listed = await eventually('the list has the end', list, { until: isEnded });
    expect(listed.map((found) => found.runId)).toEqual([await currentRun()]);
  },
);

// Proves B12.
it.concurrent('a batch does not continue as new in the workflow task that received an update', async () => {
  const server = await startDevServer({
    cli: temporal().cli,
    searchAttributes: true,
    dynamicConfig: { ...DYNAMIC_CONFIG, ...SUGGESTED_SOON },
  });
  const gate = await TemporalGate.open(server.address);
  const environment = await Environment.open({ address: gate.address });
  const batch = new TestBatch(environment);
  batch.addItems(1, ENDLESS_TURN).addItems(1);
  const { workflowId } = await batch.start({ concurrency: 1 });
  await batch.waitUntilSent(1);
  const { runId } = await batch.workflow.describe();
  const firstRun = environment.client.workflow.getHandle(workflowId, runId);
  const isSuggested = async () =>
    (await eventsOf(firstRun)).some(
      (event) => event.workflowTaskStartedEventAttributes?.suggestContinueAsNew,
    );
  while (!(await isSuggested())) await batch.handle.setConcurrency(1);
  await batch.handle.pause();

  // The end of the round and another update arrive while a workflow task is in progress: the next task has both.
  const held = gate.hold('RespondWorkflowTaskCompleted', 'call', 'setConcurrency');
  const updates = [batch.handle.setConcurrency(2)];
  await held.waitForCall();
  batch.endTurns();
  await eventually('the round has ended', async () => {
    const { raw } = await batch.workflow.describe();
    return (raw.pendingActivities ?? []).length === 0;
  });
  const requests = () =>
    gate.methodsContaining(workflowId).filter((method) => method === 'UpdateWorkflowExecution').length;
  const before = requests();
  updates.push(batch.handle.setConcurrency(3));
  await eventually('the Temporal server has the update', () => requests() > before);
  held.release();
  await Promise.all(updates);
  const events = await eventsOf(firstRun);
  const updated = events.findLastIndex((event) => event.workflowExecutionUpdateAcceptedEventAttributes);
  const [next] = events
    .slice(updated)
    .filter(
      (event) =>
        event.workflowExecutionContinuedAsNewEventAttributes ?? event.workflowTaskScheduledEventAttributes,
    );
  expect(next?.workflowExecutionContinuedAsNewEventAttributes ?? null).toBeNull();
  await batch.handle.resume();
  expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { ended: 2 } });
  expect(batch.messageCounts()).toEqual([1, 1]);
  await environment.close();
  await gate.close();
  await server.stop();
});

// Proves D3.
it.concurrent(
  'a run that received an unknown input by continue-as-new reports an unknown delivery',
  async () => {
    const { client, taskQueue } = await open();
    const workflowId = followUpWorkflowId('docs', 'job-1', 'handed-over');
    /** With a cron schedule, the second run receives its input from the first run, as with continue-as-new. */
    const options = { workflowId, taskQueue, args: [{ continued: {} }], cronSchedule: '@every 1s' };
    const { firstExecutionRunId } = await client.workflow.start(FOLLOW_UP_WORKFLOW, options);
    /** Returns the failure of a run from its history, because the client follows the chain to the next run. */
    const failureEvent = (runId: string | undefined) =>
      eventually('the run has ended', async () => {
        const last = (await eventsOf(client.workflow.getHandle(workflowId, runId))).at(-1);
        return last?.workflowExecutionFailedEventAttributes;
      });
    const first = await failureEvent(firstExecutionRunId);
    const second = await failureEvent(first.newExecutionRunId ?? undefined);
    await client.workflow.getHandle(workflowId).terminate();
    const [firstText, secondText] = [first, second].map(({ failure }) => {
      const { type, details } = failure?.applicationFailureInfo ?? {};
      expect(type).toBe('InvalidRequest');
      return `${failure?.message ?? ''} ${details?.payloads?.map(textOf).join() ?? ''}`;
    });
    // The first run rejects the cron schedule, because the later runs of a schedule would never send.
    expect(firstText).toMatch(/^Nothing was sent\. .*cronSchedule: is not supported; .*"not-sent"/s);
    expect(secondText).toMatch(/^It is unknown whether the message arrived\. .*"verdict":"unknown"/s);
  },
);
