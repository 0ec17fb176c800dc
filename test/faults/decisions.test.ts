import { describe, expect, it } from '@jest/globals';
import type { WorkflowHandle } from '@temporalio/client';
import { UPDATE_RESOLVE_DELIVERY } from '../../src/core/names';
import type { DeliveryDecision, FollowUpProgress } from '../../src/core/result';
import type { FaultSetting } from '../../sandbox';
import { eventually } from '../harness/eventually';
import type { Following } from '../harness/following';
import { type Environment } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';
import { ProcessEnvironment } from '../harness/process-environment';
import { type EventId, resetToEvent } from '../harness/reset';

const open = sharedEnvironment();

/** The job is active before the send, so that reading proves nothing, and nobody knows of the first POST. */
const ACTIVE = { status: 'active', turn: { durationMs: null } } as const;
const ASK = { onUnknownDelivery: 'ask', deadline: '2m' } as const;
const LOST: FaultSetting = { name: 'close-after-read', operation: 'message', times: 1 };

/** A follow-up that asks whether its message arrived. */
async function asking(environment: Environment | ProcessEnvironment): Promise<Following> {
  const { projectId, jobId } = environment.sandbox.addJob(ACTIVE);
  environment.sandbox.setFault({ ...LOST, projectId, jobId });
  const following = await environment.send({ projectId, jobId, ...ASK });
  await asks(following.handle);
  return following;
}

async function asks(handle: WorkflowHandle): Promise<void> {
  await eventually('the follow-up asks', async () => {
    const { phase } = await handle.query<FollowUpProgress>('progress');
    return phase === 'needs-decision';
  });
}

function resolve(
  environment: Environment | ProcessEnvironment,
  { handle }: Following,
  ...args: [DeliveryDecision, string?]
): Promise<FollowUpProgress> {
  const latest = environment.client.workflow.getHandle(handle.workflowId);
  return latest.executeUpdate<FollowUpProgress, typeof args>(UPDATE_RESOLVE_DELIVERY, { args });
}

/** Resets to right before the workflow task that took the first decision. */
async function resetBeforeDecision({ client }: Environment, { handle }: Following): Promise<WorkflowHandle> {
  const { events } = await handle.fetchHistory();
  let task: EventId | undefined;
  for (const event of events ?? []) {
    if (event.workflowTaskCompletedEventAttributes) task = event.eventId ?? undefined;
    if (event.workflowExecutionUpdateAcceptedEventAttributes) break;
  }
  if (task === undefined) throw new Error('the history has no update');
  return client.workflow.getHandle(handle.workflowId, await resetToEvent(client, handle.workflowId, task));
}

describe('a decision not-delivered', () => {
  it.concurrent(
    'sends again in the run that it names, and in the first run where it names none',
    async () => {
      const environment = await open();
      for (const named of [true, false]) {
        const following = await asking(environment);
        await resolve(environment, following, 'not-delivered', named ? following.firstRunId : undefined);
        await following.progressWhen(({ delivery }) => delivery.confirmedBy === 'response');
        expect(following.posts().map(({ processed }) => processed)).toEqual([false, true]);
      }
    },
  );

  it.concurrent('that a reset re-applies sends nothing, until somebody decides for the new run', async () => {
    const environment = await open();
    const following = await asking(environment);
    await resolve(environment, following, 'not-delivered', following.firstRunId);
    await following.progressWhen(({ delivery }) => delivery.confirmedBy === 'response');

    const again = await resetBeforeDecision(environment, following);
    await asks(again);
    const { runId } = await again.describe();
    await expect(resolve(environment, following, 'not-delivered')).rejects.toThrow();
    await expect(resolve(environment, following, 'not-delivered', following.firstRunId)).rejects.toThrow();
    expect(following.posts().map(({ processed }) => processed)).toEqual([false, true]);

    await resolve(environment, following, 'not-delivered', runId);
    await eventually('the decision for the new run sends', () => following.posts().length === 3);
    environment.sandbox.changeJob(following.key, { status: 'completed' });
    const { followUp } = (await again.result()) as Awaited<ReturnType<Following['result']>>;
    expect(followUp.delivery.confirmedBy).toBe('response');
    expect(following.posts()).toHaveLength(3);
  });
});

describe('decisions that contradict each other', () => {
  it.concurrent(
    'made at once while the worker stands still: one is followed, and the others are refused',
    () =>
      ProcessEnvironment.with({}, async (environment) => {
        const worker = await environment.startWorker();
        const following = await asking(environment);
        worker.signal('SIGSTOP');
        const run = following.firstRunId;
        const made = (['delivered', 'not-delivered', 'delivered'] as const).map(async (decision) => {
          await resolve(environment, following, decision, run);
          return decision;
        });
        setTimeout(() => {
          worker.signal('SIGCONT');
        }, 2_000);
        const settled = await Promise.allSettled(made);
        const taken = settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
        expect(taken).toHaveLength(1);
        const { delivery } = await following.progressWhen(({ phase }) => phase !== 'needs-decision');
        const confirmedBy = taken[0] === 'delivered' ? 'operator' : 'response';
        await following.progressWhen((progress) => progress.delivery.confirmedBy === confirmedBy);
        expect(delivery.verdict).not.toBe('not-sent');
        expect(following.posts()).toHaveLength(taken[0] === 'delivered' ? 1 : 2);
      }),
    60_000,
  );
});
