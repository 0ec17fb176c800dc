import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { defineSearchAttributeKey, type Payload } from '@temporalio/common';
import { FollowUpClient, type NewScheduleOptions } from '../../../src/entries/client';
import type { NewJob } from '../../../sandbox';
import { SWIFT } from '../../harness/batch-of-test';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment();

/** A schedule that sends to a job of its own. */
async function newSchedule(job: NewJob = {}) {
  const environment = await open();
  const { client, followUps, sandbox } = environment;
  const id = `schedule-${randomUUID().slice(0, 8)}`;
  const request = { ...environment.addJob(job), prompt: 'Rebase on main.', ...SWIFT };
  const handle = followUps.schedules.getHandle(id);
  const processed = { projectId: request.projectId, operation: 'message', processed: true } as const;
  return {
    ...{ id, request, handle, client, batches: followUps.batches },
    /** The same in the terms of Temporal. */
    temporal: client.schedule.getHandle(id),
    create: (options: NewScheduleOptions) => followUps.schedules.create(id, [request], options),
    sent: (messages: number) => sandbox.journal.waitFor(processed, { atLeast: messages }),
    /** Ends the turn of its job. */
    completeJob: () => sandbox.changeJob(request, { status: 'completed' }),
    /** The batches of its last firings, the newest last. */
    batchIds: async () => {
      const { info } = await handle.describe();
      const ids = info.recentActions.map(({ action }) => action.workflow.workflowId);
      return ids.map((workflowId) => workflowId.replace('follow-up-batch:', ''));
    },
  };
}

const UNTIL_TRIGGERED: NewScheduleOptions = {
  spec: { cronExpressions: ['0 0 1 1 *'] },
  state: { paused: true },
};

describe('a schedule', () => {
  // Proves B13.
  it.concurrent('sends a batch at each firing, and none while one runs', async () => {
    const { id, handle, batches, ...schedule } = await newSchedule(ENDLESS);
    await schedule.create({ spec: { intervals: [{ every: '1s' }] } });
    await schedule.sent(1);
    const { info, policies } = await eventually('a firing is skipped', () => handle.describe(), {
      until: (now) => now.info.numActionsSkippedOverlap > 0,
    });
    expect(info.numActionsTaken).toBe(1);
    expect(policies.catchupWindow).toBe(600_000);
    await handle.pause('enough of it');
    const [batchId = ''] = await schedule.batchIds();
    const second = info.recentActions[0]?.scheduledAt.toISOString().slice(0, 19) ?? '';
    expect(batchId).toBe(`${id}-${second}Z`);
    schedule.completeJob();
    const summary = { items: 1, settled: 1 };
    expect(await batches.getHandle(batchId).result()).toMatchObject({ state: 'done', summary });
  });

  it.concurrent(
    'fires at each trigger, paused as it is; not while a batch runs, unless told to',
    async () => {
      const { id, handle, client, ...schedule } = await newSchedule(ENDLESS);
      await schedule.create(UNTIL_TRIGGERED);
      const first = await handle.trigger();
      expect(first).toEqual({ outcome: 'started', batchId: expect.stringContaining(`${id}-`) });
      await schedule.sent(1);
      const batch = await client.workflow.getHandle(`follow-up-batch:${first.batchId ?? ''}`).describe();
      expect(batch.priority).toMatchObject({ priorityKey: 4 });
      expect(await batch.staticSummary()).toBe(`Batch of 1 follow-up by the schedule \`${id}\``);
      const scheduledBy = defineSearchAttributeKey('TemporalScheduledById', 'KEYWORD');
      expect(batch.typedSearchAttributes.get(scheduledBy)).toBe(id);
      expect(await handle.trigger()).toEqual({ outcome: 'skipped', batchId: null });
      // It may also be the next one to start.
      expect(await handle.trigger('BUFFER_ONE')).toEqual({ outcome: 'waiting', batchId: null });
      const both = await Promise.all([1, 2].map(() => handle.trigger('ALLOW_ALL')));
      expect(both.map(({ outcome }) => outcome)).toEqual(['started', 'started']);
      await schedule.sent(3);
      const ids = [first, ...both].map(({ batchId }) => batchId);
      expect(new Set(ids).size).toBe(3);
      expect((await schedule.batchIds()).sort()).toEqual(ids.sort());
      expect((await handle.describe()).state.paused).toBe(true);
      schedule.completeJob();
    },
  );

  it.concurrent(
    'has what an update gives it, and keeps what others have set, before its look and after it',
    async () => {
      const { id, handle, temporal, request, client, create } = await newSchedule();
      await create({ ...UNTIL_TRIGGERED, policies: { overlap: 'BUFFER_ALL' } });
      const calendars = [{ hour: { start: 8, end: 18 }, comment: 'in office hours' }];
      const settings = { concurrency: 7, tolerate: { items: 3 } };
      const own = { memo: { team: 'docs' }, priority: { priorityKey: 2 } };
      await temporal.update(({ spec, action, ...others }) => ({
        ...others,
        spec: { ...spec, calendars, skip: [{ month: 'DECEMBER', hour: 3 }] },
        action: { ...action, ...own, workflowTaskTimeout: '90s', staticSummary: 'By the docs team' },
      }));
      // An update encodes between its look at the schedule and its call.
      let noted: Promise<void> | undefined;
      const encode = async (payloads: Payload[]) => {
        await (noted ??= handle.update({ state: { note: 'slower' } }));
        return payloads;
      };
      const codec = { encode, decode: (payloads: Payload[]) => Promise.resolve(payloads) };
      const late = new Client({ connection: client.connection, dataConverter: { payloadCodecs: [codec] } });
      await new FollowUpClient(late).schedules.getHandle(id).update(settings);
      const kept = { ...own, workflowTaskTimeout: 90_000 };
      expect(await temporal.describe()).toMatchObject({
        spec: {
          calendars: [{ hour: [{ start: 8, end: 18 }], comment: 'in office hours' }],
          skip: [{ month: [{ start: 'DECEMBER' }] }],
        },
        action: { ...kept, staticSummary: 'By the docs team', args: [settings] },
      });
      const item = { ...request, prompt: 'Fix the links.' };
      await handle.update({ items: [item, item], spec: { intervals: [{ every: '24h' }] } });
      const args = [{ ...settings, items: [{ prompt: 'Fix the links.' }, {}] }];
      const staticSummary = `Batch of 2 follow-ups by the schedule \`${id}\``;
      expect(await handle.describe()).toMatchObject({
        spec: { calendars: [], intervals: [{ every: 86_400_000 }] },
        policies: { overlap: 'BUFFER_ALL' },
        state: { paused: true, note: 'slower' },
        action: { ...kept, args, staticSummary },
      });
    },
  );

  it.concurrent(
    'takes nothing that the server refuses, and is left alone once it acts otherwise',
    async () => {
      const { id, handle, temporal, create } = await newSchedule();
      const spec = { cronExpressions: ['60 3 * * *'] };
      const problem = 'spec: is refused: Minute is not in range [0-59]';
      await expect(create({ spec })).rejects.toThrow(problem);
      await create(UNTIL_TRIGGERED);
      await expect(handle.update({ spec })).rejects.toThrow(problem);
      const actsAs = (other: { workflowId: string } | { workflowType: string }) =>
        temporal.update(({ action, ...others }) => ({ ...others, action: { ...action, ...other } }));
      await actsAs({ workflowId: 'nightly' });
      const words = `have the workflow id "nightly", which no batch id names. Nothing was started. Set it back to "follow-up-batch:${id}"`;
      const conflict = { code: 'CONFLICT', message: expect.stringContaining(words) };
      await expect(handle.trigger()).rejects.toMatchObject(conflict);
      await actsAs({ workflowType: 'other' });
      const refused = 'does not start follow-up batches; it starts "other"';
      await expect(handle.trigger()).rejects.toThrow(refused);
      await expect(handle.update({ concurrency: 2 })).rejects.toThrow(refused);
      expect((await handle.describe()).info.numActionsTaken).toBe(0);
    },
  );
});
