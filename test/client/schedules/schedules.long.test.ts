import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { ScheduleDescription } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import { ConflictError, type NewScheduleOptions } from '../../../src/client';
import type { NewJob } from '../../../sandbox';
import { SWIFT } from '../../harness/batch-of-test';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment();

/** All test files share one server: no schedule may outlive its test, whatever becomes of the test. */
const made: string[] = [];
afterAll(async () => {
  const { client } = await open();
  for (const id of made)
    await client.schedule
      .getHandle(id)
      .delete()
      .catch(() => undefined);
});

/** A schedule that sends to a job of its own. */
async function newSchedule(job: NewJob = {}) {
  const environment = await open();
  const { client, followUps, sandbox } = environment;
  const id = `schedule-${randomUUID().slice(0, 8)}`;
  made.push(id);
  const request = { ...environment.addJob(job), prompt: 'Rebase on main.', ...SWIFT };
  const handle = followUps.schedules.getHandle(id);
  const processed = { projectId: request.projectId, operation: 'message', processed: true } as const;
  return {
    ...{ id, request, handle, client, batches: followUps.batches },
    /** The same in the terms of Temporal. */
    temporal: client.schedule.getHandle(id),
    create: (options: NewScheduleOptions) => followUps.schedules.create(id, [request], options),
    posts: () => environment.posts(request),
    sent: (messages: number) => sandbox.journal.waitFor(processed, { atLeast: messages }),
    /** Ends the turn of its job. */
    completeJob: () => sandbox.changeJob(request, { status: 'completed' }),
    describedWhen: (until: (schedule: ScheduleDescription) => boolean) =>
      eventually('the schedule is as wanted', () => handle.describe(), { until }),
    /** The batches of its last firings, the newest last. */
    batchIds: async () => {
      const { info } = await handle.describe();
      return info.recentActions.map(({ action }) =>
        action.workflow.workflowId.replace('follow-up-batch:', ''),
      );
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
    const schedule = await newSchedule(ENDLESS);
    await schedule.create({ spec: { intervals: [{ every: '1s' }] } });
    await schedule.sent(1);
    const held = await schedule.describedWhen(({ info }) => info.numActionsSkippedOverlap > 0);
    expect(held.info.numActionsTaken).toBe(1);
    expect(held.policies.catchupWindow).toBe(600_000);
    await schedule.handle.pause('enough of it');
    schedule.completeJob();
    const { info } = await schedule.describedWhen((now) => now.info.runningActions.length === 0);
    const seconds = info.recentActions.map(({ scheduledAt }) => scheduledAt.toISOString().slice(0, 19));
    const batchIds = await schedule.batchIds();
    expect(batchIds).toEqual(seconds.map((second) => `${schedule.id}-${second}Z`));
    expect(await schedule.batches.getHandle(batchIds[0] ?? '').result()).toMatchObject({
      state: 'done',
      summary: { items: 1, settled: 1 },
    });
  });

  it.concurrent(
    'fires at each trigger, paused as it is, and its batches name it; not while one runs, unless told to',
    async () => {
      const schedule = await newSchedule(ENDLESS);
      await schedule.create(UNTIL_TRIGGERED);
      const first = await schedule.handle.trigger();
      expect(first).toEqual({ batchId: expect.stringContaining(`${schedule.id}-`) });
      await schedule.sent(1);
      const batch = await schedule.client.workflow
        .getHandle(`follow-up-batch:${first.batchId ?? ''}`)
        .describe();
      expect(batch.priority).toMatchObject({ priorityKey: 4 });
      expect(await batch.staticSummary()).toBe(`Batch of 1 follow-up by the schedule \`${schedule.id}\``);
      const scheduledBy = defineSearchAttributeKey('TemporalScheduledById', 'KEYWORD');
      expect(batch.typedSearchAttributes.get(scheduledBy)).toBe(schedule.id);
      expect(await schedule.handle.trigger()).toEqual({ batchId: null });
      const second = await schedule.handle.trigger('ALLOW_ALL');
      await schedule.sent(2);
      const ids = [first, second].map(({ batchId }) => batchId);
      expect(new Set(ids).size).toBe(2);
      expect((await schedule.batchIds()).sort()).toEqual(ids.sort());
      expect((await schedule.handle.describe()).state.paused).toBe(true);
      schedule.completeJob();
    },
  );

  it.concurrent(
    'sends what an update has given it, and keeps what is not given, whoever has set it',
    async () => {
      const schedule = await newSchedule();
      await schedule.create({ ...UNTIL_TRIGGERED, policies: { overlap: 'BUFFER_ALL' } });
      await schedule.temporal.update(({ spec, action, ...others }) => ({
        ...others,
        spec: {
          ...spec,
          calendars: [{ hour: { start: 8, end: 18 }, dayOfWeek: 'MONDAY', comment: 'in office hours' }],
          skip: [{ month: 'DECEMBER', hour: 3 }],
        },
        action: {
          ...action,
          ...{ workflowTaskTimeout: '90s', memo: { team: 'docs' }, staticSummary: 'By the docs team' },
          priority: { priorityKey: 2 },
        },
      }));
      await schedule.handle.update({ concurrency: 7, state: { note: 'slower' } });
      const before = await schedule.temporal.describe();
      const own = { workflowTaskTimeout: 90_000, memo: { team: 'docs' }, priority: { priorityKey: 2 } };
      expect(before).toMatchObject({
        spec: {
          calendars: [{ hour: [{ start: 8, end: 18 }], comment: 'in office hours' }],
          skip: [{ month: [{ start: 'DECEMBER' }] }],
        },
        action: { ...own, staticSummary: 'By the docs team', args: [{ concurrency: 7 }] },
      });
      const item = { ...schedule.request, prompt: 'Fix the links.' };
      await schedule.handle.update({ items: [item, item], spec: { intervals: [{ every: '24h' }] } });
      const { spec, policies, state, action } = await schedule.handle.describe();
      expect(spec).toMatchObject({ calendars: [], intervals: [{ every: 86_400_000 }] });
      expect({ policies, state }).toMatchObject({
        policies: { overlap: 'BUFFER_ALL' },
        state: { paused: true, note: 'slower' },
      });
      const staticSummary = `Batch of 2 follow-ups by the schedule \`${schedule.id}\``;
      expect(action).toMatchObject({ ...own, args: [{ concurrency: 7 }], staticSummary });
      await schedule.handle.trigger();
      await schedule.sent(2);
      expect(schedule.posts().map(({ prompt }) => prompt?.text)).toEqual([
        'Fix the links.',
        'Fix the links.',
      ]);
    },
  );

  it.concurrent.each([
    [{ cronExpressions: ['60 3 * * *'] }, 'spec: is refused: Minute is not in range [0-59]'],
    [{ timezone: 'Europe/Berlim' }, 'spec: is refused: unknown time zone Europe/Berlim'],
  ])('is not made of %j: %s', async (spec, problem) => {
    const schedule = await newSchedule();
    await expect(schedule.create({ spec })).rejects.toThrow(problem);
    await schedule.create(UNTIL_TRIGGERED);
    await expect(schedule.handle.update({ spec })).rejects.toThrow(problem);
  });

  it.concurrent('of another program is not touched', async () => {
    const schedule = await newSchedule();
    await schedule.client.schedule.create({
      scheduleId: schedule.id,
      spec: { intervals: [{ every: 3_600_000 }] },
      action: { type: 'startWorkflow', workflowType: 'other', taskQueue: 'nobody' },
    });
    await expect(schedule.create(UNTIL_TRIGGERED)).rejects.toThrow(ConflictError);
    const refused = 'does not start follow-up batches; it starts "other"';
    await expect(schedule.handle.trigger()).rejects.toThrow(refused);
    await expect(schedule.handle.update({ concurrency: 2 })).rejects.toThrow(refused);
    expect((await schedule.temporal.describe()).action).toMatchObject({ workflowType: 'other' });
  });
});
