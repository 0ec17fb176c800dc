import { expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/client';
import { followUpWorkflowId } from '../../../src/core/ids';
import { FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import { eventually } from '../../harness/eventually';
import { BY_RESPONSE, ENDLESS, QUICK } from '../../harness/following';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const textOf = ({ data }: { data?: Uint8Array | null }) => Buffer.from(data ?? []).toString();

// So low that a watch of some polls reaches it, as a long one reaches the default of 4,096 events.
const { open } = sharedEnvironment({ dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 45 } });

// Proves T4.
it.concurrent('a follow-up that has continued as new is attached to, compared and waited for', async () => {
  const environment = await open();
  const { followUps, client } = environment;
  // Each poll by a timer of its own, so that history grows fast.
  const polling = { ...QUICK.polling, timerPolls: 'all' } as const;
  const asked = { ...environment.newRequest(ENDLESS), polling };
  const { workflowId, runId: firstRun } = await followUps.start(asked);
  const handle = followUps.getHandle(workflowId);
  const result = handle.result();
  const currentRun = async () => (await handle.describe()).runId;
  await eventually('it continues as new', currentRun, { until: (runId) => runId !== firstRun });
  const [started] = await eventsOf(client.workflow.getHandle(workflowId));
  const input = started?.workflowExecutionStartedEventAttributes?.input?.payloads?.map(textOf).join();
  expect(input).toContain('continued');
  expect(input).not.toContain(asked.prompt);

  expect(await followUps.start(asked)).toMatchObject({ attached: 'running', promptCompared: true });
  await expect(followUps.start({ ...asked, prompt: 'Another.' })).rejects.toThrow(ConflictError);

  environment.sandbox.changeJob(asked, { status: 'completed' });
  const followUp = { delivery: BY_RESPONSE, evidence: 'seen-active' };
  expect(await result).toMatchObject({ status: 'completed', followUp });
  expect(environment.posts(asked)).toHaveLength(1);
});

// Proves D3.
it.concurrent('a run that was handed what it does not know does not say that nothing was sent', async () => {
  const { client, taskQueue } = await open();
  const workflowId = followUpWorkflowId('docs', 'job-1', 'handed-over');
  /** By a cron schedule the second run gets its input from the first, as by continue-as-new. */
  const options = { workflowId, taskQueue, args: [{ continued: {} }], cronSchedule: '@every 1s' };
  const { firstExecutionRunId } = await client.workflow.start(FOLLOW_UP_WORKFLOW, options);
  /** Not by the client, which does not tell the end of a run that another one follows. */
  const endOf = (runId: string | undefined) =>
    eventually('the run has ended', async () => {
      const last = (await eventsOf(client.workflow.getHandle(workflowId, runId))).at(-1);
      return last?.workflowExecutionFailedEventAttributes;
    });
  const first = await endOf(firstExecutionRunId);
  const second = await endOf(first.newExecutionRunId ?? undefined);
  await client.workflow.getHandle(workflowId).terminate();
  const [said, saidThen] = [first, second].map(({ failure }) => {
    const { type, details } = failure?.applicationFailureInfo ?? {};
    expect(type).toBe('InvalidRequest');
    return `${failure?.message ?? ''} ${details?.payloads?.map(textOf).join() ?? ''}`;
  });
  // A cron schedule is refused itself: its later runs would never send.
  expect(said).toMatch(/^Nothing was sent\. .*cronSchedule: is for work that is repeated; .*"not-sent"/s);
  expect(saidThen).toMatch(/^Nobody can tell whether the message arrived\. .*"verdict":"unknown"/s);
});
