import { expect, it } from '@jest/globals';
import { ConflictError } from '../../../src/client';
import { followUpWorkflowId } from '../../../src/core/ids';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import { eventually } from '../../harness/eventually';
import { BY_RESPONSE, ENDLESS, QUICK } from '../../harness/following';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const textOf = ({ data }: { data?: Uint8Array | null }) => Buffer.from(data ?? []).toString();

/** Every poll by a timer of its own, so that history grows fast. */
const BY_TIMERS = { polling: { ...QUICK.polling, timerPolls: 'all' } } as const;

// So low that a watch of some polls reaches it, as a long one reaches the default of 4,096 events.
const { open } = sharedEnvironment({ dynamicConfig: { 'limit.historyCount.suggestContinueAsNew': 45 } });

// Proves T4.
it.concurrent(
  'a follow-up whose history grows is attached to, compared and waited for when it has continued as new',
  async () => {
    const environment = await open();
    const asked = { ...environment.newRequest(ENDLESS), ...BY_TIMERS };
    const other = { ...asked, prompt: 'Something else.' };
    const { followUps } = environment;
    const { workflowId, runId: firstRun } = await followUps.start(asked);
    const handle = followUps.getHandle(workflowId);
    const result = handle.result();
    const currentRun = async () => (await handle.describe()).runId;
    await eventually('it continues as new', currentRun, { until: (runId) => runId !== firstRun });
    const [started] = await eventsOf(environment.client.workflow.getHandle(workflowId));
    const input = started?.workflowExecutionStartedEventAttributes?.input?.payloads?.map(textOf).join();
    expect(input).toContain('continued');
    expect(input).not.toContain(asked.prompt);

    expect(await followUps.start(asked)).toMatchObject({ attached: 'running', promptCompared: true });
    await expect(followUps.start(other)).rejects.toThrow(ConflictError);

    environment.sandbox.changeJob(asked, { status: 'completed' });
    const followUp = { delivery: BY_RESPONSE, evidence: 'seen-active' };
    expect(await result).toMatchObject({ status: 'completed', followUp });
    expect(environment.posts(asked)).toHaveLength(1);
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
    details: failure?.applicationFailureInfo?.details?.payloads?.map(textOf).join(),
  }));
}

// Proves D3.
it.concurrent(
  'a run that was handed what it does not know ends without saying that nothing was sent',
  async () => {
    const workflowId = followUpWorkflowId('docs', 'job-1', 'handed-over');
    const [first, second] = await endsOfRunsWith(FOLLOW_UP_WORKFLOW, workflowId);
    expect([first?.type, second?.type]).toEqual(['InvalidRequest', 'InvalidRequest']);
    // A cron schedule is refused itself: its later runs would never send.
    expect(first?.message).toMatch(/^Nothing was sent\. .*cronSchedule: is for work that is repeated; use/);
    expect(first?.details).toContain('"verdict":"not-sent"');
    expect(second?.message).toMatch(/^Nobody can tell whether the message arrived\. /);
    expect(second?.details).toContain('"verdict":"unknown"');
  },
);

it.concurrent('a batch that was handed what it does not know is refused', async () => {
  const ends = await endsOfRunsWith(BATCH_WORKFLOW, 'follow-up-batch:handed-over');
  expect(ends.map(({ type }) => type)).toEqual(['InvalidBatch', 'InvalidBatch']);
});
