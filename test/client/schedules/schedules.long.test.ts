import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import { FollowUpClient, type CreateScheduleOptions } from '../../../src/entries/client';
import type { NewJob } from '../../../sandbox';
import { FASTEST_OPTIONS } from '../../harness/test-batch';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment();

/** Returns a schedule that sends messages to a new job. */
async function newSchedule(job: NewJob = {}) {
  const environment = await open();
  const { client, followUps, sandbox } = environment;
  const id = `schedule-${randomUUID().slice(0, 8)}`;
  const request = { ...environment.addJob(job), prompt: 'Rebase on main.', ...FASTEST_OPTIONS };
  const handle = followUps.schedules.getHandle(id);
  const processed = { projectId: request.projectId, operation: 'message', processed: true } as const;
  return {
    ...{ id, request, handle, client, batches: followUps.batches },
    /** The SDK's handle of the schedule. */
    temporal: client.schedule.getHandle(id),
    create: (options: CreateScheduleOptions) => followUps.schedules.create(id, [request], options),
    sent: (messages: number) => sandbox.journal.waitFor(processed, { atLeast: messages }),
    /** Completes the schedule's job. */
    completeJob: () => sandbox.changeJob(request, { status: 'completed' }),
    /** Returns the batch IDs of the last firings. The newest batch is the last one. */
    batchIds: async () => {
      const { info } = await handle.describe();
      const ids = info.recentActions.map(({ action }) => action.workflow.workflowId);
      return ids.map((workflowId) => workflowId.replace('follow-up-batch:', ''));
    },
  };
}

const UNTIL_TRIGGERED: CreateScheduleOptions = {
  spec: { cronExpressions: ['0 0 1 1 *'] },
  state: { paused: true },
};

/** Returns a client whose first updates of a schedule the Temporal server rejects with a conflict. */
function withUpdateConflicts(client: Client, conflicts: number) {
  const { workflowService } = client.connection;
  let updates = 0;
  const updateSchedule = (request: Parameters<typeof workflowService.updateSchedule>[0]) => {
    updates += 1;
    if (updates > conflicts) return workflowService.updateSchedule(request);
    const details = 'mismatched conflict token';
    const failure = { code: 9, details, metadata: { get: () => [] } };
    return Promise.reject(Object.assign(new Error(details), failure));
  };
  const value: unknown = Object.create(workflowService, {
    updateSchedule: { value: updateSchedule },
  });
  const connection = Object.create(client.connection, { workflowService: { value } }) as Client['connection'];
  return { followUps: new FollowUpClient(new Client({ connection })), updates: () => updates };
}

describe('a schedule', () => {
  // Proves B13.
  it.concurrent('starts a batch at each firing, unless an earlier batch still runs', async () => {
    const { id, handle, batches, ...schedule } = await newSchedule(ENDLESS_TURN);
    await schedule.create({ spec: { intervals: [{ every: '1s' }] } });
    await schedule.sent(1);
    const { info, policies } = await eventually('a firing is skipped', () => handle.describe(), {
      until: (now) => now.info.numActionsSkippedOverlap > 0,
    });
    expect(info.numActionsTaken).toBe(1);
    expect(policies.catchupWindow).toBe(600_000);
    await handle.pause('one batch is enough');
    const [batchId = ''] = await schedule.batchIds();
    const second = info.recentActions[0]?.scheduledAt.toISOString().slice(0, 19) ?? '';
    expect(batchId).toBe(`${id}-${second}Z`);
    schedule.completeJob();
    const summary = { items: 1, ended: 1 };
    expect(await batches.getHandle(batchId).result()).toMatchObject({ state: 'done', summary });
  });

  it.concurrent('starts a batch with low priority if it is triggered, also while it is paused', async () => {
    const { id, handle, client, ...schedule } = await newSchedule(ENDLESS_TURN);
    await schedule.create(UNTIL_TRIGGERED);
    await handle.trigger('SKIP');
    await schedule.sent(1);
    const [batchId = ''] = await schedule.batchIds();
    expect(batchId).toContain(`${id}-`);
    const batch = await client.workflow.getHandle(`follow-up-batch:${batchId}`).describe();
    expect(batch.priority).toMatchObject({ priorityKey: 4 });
    expect(await batch.staticSummary()).toBe(`Batch of 1 follow-up, started by the schedule \`${id}\``);
    const scheduledBy = defineSearchAttributeKey('TemporalScheduledById', 'KEYWORD');
    expect(batch.typedSearchAttributes.get(scheduledBy)).toBe(id);
    expect((await handle.describe()).state.paused).toBe(true);
    schedule.completeJob();
  });

  it.concurrent(
    'keeps all fields that an update does not set, also fields that the SDK or an operator has set',
    async () => {
      const { id, handle, temporal, request, create } = await newSchedule();
      await create({ ...UNTIL_TRIGGERED, policies: { overlap: 'BUFFER_ALL' } });
      const calendars = [{ hour: { start: 8, end: 18 }, comment: 'in office hours' }];
      const settings = { concurrency: 7, maxFailures: { items: 3 } };
      const operatorFields = { memo: { team: 'docs' }, priority: { priorityKey: 2 } };
      await temporal.update(({ spec, action, ...others }) => ({
        ...others,
        spec: { ...spec, calendars, skip: [{ month: 'DECEMBER', hour: 3 }] },
        action: {
          ...action,
          ...operatorFields,
          workflowTaskTimeout: '90s',
          staticSummary: 'By the docs team',
        },
      }));
      await handle.update({ ...settings, state: { note: 'slower' } });
      const unchanged = { ...operatorFields, workflowTaskTimeout: 90_000 };
      expect(await temporal.describe()).toMatchObject({
        spec: {
          calendars: [{ hour: [{ start: 8, end: 18 }], comment: 'in office hours' }],
          skip: [{ month: [{ start: 'DECEMBER' }] }],
        },
        action: { ...unchanged, staticSummary: 'By the docs team', args: [settings] },
      });
      const item = { ...request, prompt: 'Fix the links.' };
      await handle.update({
        items: [item, { ...item, prompt: 'Fix the typo.' }],
        spec: { intervals: [{ every: '24h' }] },
      });
      const args = [{ ...settings, items: [{ prompt: 'Fix the links.' }, {}] }];
      const staticSummary = `Batch of 2 follow-ups, started by the schedule \`${id}\``;
      expect(await handle.describe()).toMatchObject({
        spec: { calendars: [], intervals: [{ every: 86_400_000 }] },
        policies: { overlap: 'BUFFER_ALL' },
        state: { paused: true, note: 'slower' },
        action: { ...unchanged, args, staticSummary },
      });
    },
  );

  it.concurrent(
    'is updated again if the Temporal server reports a conflict, at most five times',
    async () => {
      const { id, handle, client, create } = await newSchedule();
      await create(UNTIL_TRIGGERED);
      const twice = withUpdateConflicts(client, 2);
      await twice.followUps.schedules.getHandle(id).update({ concurrency: 7 });
      expect(twice.updates()).toBe(3);
      expect((await handle.describe()).action).toMatchObject({ args: [{ concurrency: 7 }] });
      const always = withUpdateConflicts(client, Infinity);
      await expect(always.followUps.schedules.getHandle(id).update({ concurrency: 8 })).rejects.toMatchObject(
        {
          code: 'CONFLICT',
          message:
            `Other clients are changing the schedule "${id}" at the same time (mismatched conflict token). ` +
            'Nothing was changed. Repeat the update.',
        },
      );
      expect(always.updates()).toBe(5);
      expect((await handle.describe()).action).toMatchObject({ args: [{ concurrency: 7 }] });
    },
  );

  it.concurrent('applies each of several changes that directly follow each other', async () => {
    // Without a read after each change, the Temporal server loses a tenth to a quarter of the changes.
    const states = Array.from({ length: 20 }, async () => {
      const { handle, create } = await newSchedule();
      await create({ spec: UNTIL_TRIGGERED.spec });
      await handle.update({ concurrency: 7 });
      await handle.pause('holidays');
      await handle.trigger();
      const times = { start: new Date('2026-01-01T00:00:00Z'), end: new Date('2026-01-01T00:00:00Z') };
      await handle.backfill({ ...times, overlap: 'ALLOW_ALL' });
      const paused = await handle.describe();
      await handle.unpause();
      await handle.trigger();
      const { info, state } = await handle.describe();
      return [paused.state.note, state.paused, info.numActionsTaken];
    });
    const expected = Array.from(states, () => ['holidays', false, 3]);
    expect(await Promise.all(states)).toEqual(expected);
  });

  it.concurrent('rejects an invalid change, and a schedule that starts another workflow', async () => {
    const { handle, temporal, create } = await newSchedule();
    const spec = { cronExpressions: ['60 3 * * *'] };
    const problem = 'spec or policies: is not valid: Minute is not in range [0-59]';
    await expect(create({ spec })).rejects.toThrow(problem);
    const overlap = 'skip' as never;
    await expect(create({ ...UNTIL_TRIGGERED, policies: { overlap } })).rejects.toThrow(
      "spec or policies: is not valid: Invalid enum value: 'skip'",
    );
    await expect(
      create({ ...UNTIL_TRIGGERED, policies: { catchupWindow: 'soon' as never } }),
    ).rejects.toThrow('spec or policies: is not valid: Invalid duration string');
    await create(UNTIL_TRIGGERED);
    await expect(handle.update({ spec })).rejects.toThrow(problem);
    await temporal.update(({ action, ...others }) => ({
      ...others,
      action: { ...action, workflowType: 'other' },
    }));
    const words = 'does not start follow-up batches; it starts "other"';
    await expect(handle.update({ concurrency: 2 })).rejects.toThrow(words);
    const missing = { code: 'NOT_FOUND', message: expect.stringContaining('has no schedule "nightly"') };
    const { followUps } = await open();
    await expect(followUps.schedules.getHandle('nightly').update({})).rejects.toMatchObject(missing);
  });
});
