import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from '@jest/globals';
import { Client, type ScheduleDescription, type ScheduleSummary } from '@temporalio/client';
import { defineSearchAttributeKey, type Payload } from '@temporalio/common';
import {
  ConflictError,
  InvalidRequestError,
  type NewScheduleOptions,
  type ScheduleHandle,
} from '../../src/client';
import { pageWorkflowId, runOf } from '../../src/core/ids';
import type { FollowUpRequest } from '../../src/core/request';
import { clientOf } from '../client/client-under-test';
import { taskSeconds } from '../harness/batch-of-test';
import { type Environment, QUICK } from '../harness/environment';
import { eventually } from '../harness/eventually';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment({ sandbox: { turnMs: 300 } });

/** All test files share one server: no schedule may outlive its test, whatever becomes of the test. */
const made: ScheduleOfTest[] = [];
afterAll(async () => {
  for (const schedule of made) await schedule.temporal.delete().catch(() => undefined);
});

/** Longer than a firing and its batch take beside the batches of the other tests. */
const PATIENCE_MS = 20_000;

/** A schedule that sends to a job of its own. */
class ScheduleOfTest {
  readonly id = `schedule-${randomUUID().slice(0, 8)}`;
  readonly request: FollowUpRequest;

  constructor(
    private readonly environment: Environment,
    turn: { durationMs: number | null; outcome?: 'failed' } = { durationMs: 300 },
  ) {
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: `project-${this.id}`, turn });
    this.request = { projectId, jobId, prompt: 'Rebase on main.', ...QUICK, deadline: '60s' };
    made.push(this);
  }

  static async open(turn?: { durationMs: number | null; outcome?: 'failed' }): Promise<ScheduleOfTest> {
    return new ScheduleOfTest(await open(), turn);
  }

  get schedules() {
    return clientOf(this.environment).schedules;
  }

  get handle(): ScheduleHandle {
    return this.schedules.getHandle(this.id);
  }

  /** The same in the terms of Temporal. */
  get temporal() {
    return this.environment.client.schedule.getHandle(this.id);
  }

  create(options: NewScheduleOptions, request = this.request) {
    return this.schedules.create(this.id, [request], options);
  }

  async listed(): Promise<ScheduleSummary | undefined> {
    for await (const schedule of this.schedules.list()) if (schedule.scheduleId === this.id) return schedule;
    return undefined;
  }

  /** The messages that reached the service. */
  posts() {
    return this.environment.sandbox.journal.entries({
      projectId: this.request.projectId,
      operation: 'message',
    });
  }

  async sent(messages: number): Promise<void> {
    const filter = { projectId: this.request.projectId, operation: 'message', processed: true } as const;
    await this.environment.sandbox.journal.waitFor(filter, { atLeast: messages, timeoutMs: PATIENCE_MS });
  }

  /** Ends the turn of its job. */
  completeJob(): void {
    const { projectId, jobId } = this.request;
    this.environment.sandbox.changeJob({ projectId, jobId }, { status: 'completed' });
  }

  async describedWhen(wanted: (schedule: ScheduleDescription) => boolean): Promise<ScheduleDescription> {
    return eventually('the schedule is as wanted', () => this.handle.describe(), {
      until: wanted,
      timeoutMs: PATIENCE_MS,
    });
  }

  /** The batches of its last firings, the newest last. */
  async batchIds(): Promise<string[]> {
    const { info } = await this.handle.describe();
    return info.recentActions.map(({ action }) => batchIdOf(action.workflow.workflowId));
  }

  async ended(batchId: string | null): Promise<unknown> {
    return clientOf(this.environment)
      .batches.getHandle(batchId ?? 'none')
      .result();
  }
}

function batchIdOf(workflowId: string): string {
  return workflowId.replace('follow-up-batch:', '');
}

const UNTIL_TRIGGERED: NewScheduleOptions = {
  spec: { cronExpressions: ['0 0 1 1 *'] },
  state: { paused: true },
};
const DAILY: NewScheduleOptions = { spec: { cronExpressions: ['0 3 * * *'] } };

describe('a schedule', () => {
  it.concurrent(
    'sends again at each firing, as a batch of its own; skips while one runs; and rests when paused',
    async () => {
      const schedule = await ScheduleOfTest.open({ durationMs: null });
      await schedule.create({ spec: { intervals: [{ every: '2s' }] } });
      await schedule.sent(1);
      const held = await schedule.describedWhen(({ info }) => info.numActionsSkippedOverlap > 0);
      expect(held.info.numActionsTaken).toBe(1);
      expect(held.policies.catchupWindow).toBe(600_000);
      expect(schedule.posts()).toHaveLength(1);

      schedule.completeJob();
      await schedule.sent(2);
      await schedule.handle.pause('enough of it');
      schedule.completeJob();
      const { state, info } = await schedule.describedWhen(
        (now) => now.info.recentActions.length === 2 && now.info.runningActions.length === 0,
      );
      expect(state).toMatchObject({ paused: true, note: 'enough of it' });
      const seconds = info.recentActions.map(({ scheduledAt }) => scheduledAt.toISOString().slice(0, 19));
      expect(await schedule.batchIds()).toEqual(seconds.map((second) => `${schedule.id}-${second}Z`));
      for (const batchId of await schedule.batchIds())
        expect(await schedule.ended(batchId)).toMatchObject({
          state: 'done',
          summary: { items: 1, settled: 1 },
        });
      expect(schedule.posts()).toHaveLength(2);
    },
  );

  it.concurrent('fires when triggered, paused as it is; and not while one runs, unless told to', async () => {
    const schedule = await ScheduleOfTest.open({ durationMs: null });
    await schedule.create(UNTIL_TRIGGERED);
    const first = await schedule.handle.trigger();
    expect(first).toEqual({ outcome: 'started', batchId: expect.stringContaining(`${schedule.id}-`) });
    await schedule.sent(1);
    expect(await schedule.handle.trigger()).toEqual({ outcome: 'skipped', batchId: null });
    const second = await schedule.handle.trigger('ALLOW_ALL');
    expect(second.outcome).toBe('started');
    await schedule.sent(2);
    expect(await schedule.batchIds()).toEqual([first.batchId, second.batchId]);
    expect((await schedule.handle.describe()).state.paused).toBe(true);
    schedule.completeJob();
  });

  it.concurrent(
    'that several trigger at once starts a batch for each, and each is told its own',
    async () => {
      const schedule = await ScheduleOfTest.open({ durationMs: null });
      await schedule.create(UNTIL_TRIGGERED);
      const triggers = Array.from({ length: 3 }, () => schedule.handle.trigger('ALLOW_ALL'));
      const triggered = await Promise.all(triggers);
      expect(triggered.map(({ outcome }) => outcome)).toEqual(['started', 'started', 'started']);
      const ids = triggered.map(({ batchId }) => batchId);
      expect(new Set(ids).size).toBe(3);
      expect((await schedule.batchIds()).sort()).toEqual(ids.sort());
      await schedule.sent(3);
      schedule.completeJob();
    },
  );

  it.concurrent('is found from its batches: by their summary, and its id as a search attribute', async () => {
    const schedule = await ScheduleOfTest.open();
    const { client } = await open();
    await schedule.create(UNTIL_TRIGGERED);
    const { batchId } = await schedule.handle.trigger();
    await schedule.sent(1);
    const batch = await client.workflow.getHandle(`follow-up-batch:${batchId ?? ''}`).describe();
    expect(batch.priority).toMatchObject({ priorityKey: 4 });
    expect(await batch.staticSummary()).toBe(`Batch of 1 follow-up by the schedule \`${schedule.id}\``);
    const scheduledBy = defineSearchAttributeKey('TemporalScheduledById', 'KEYWORD');
    expect(batch.typedSearchAttributes.get(scheduledBy)).toBe(schedule.id);
    const pageId = pageWorkflowId(batchId ?? '', runOf(batch.runId), 1);
    const page = await client.workflow.getHandle(pageId).describe();
    const ofBatch = defineSearchAttributeKey('FollowUpBatch', 'KEYWORD');
    expect([batch, page].map((each) => each.typedSearchAttributes.get(ofBatch))).toEqual([batchId, batchId]);
    const both = [batch.workflowId, pageId].map((id) => taskSeconds(client.workflow.getHandle(id)));
    expect(await Promise.all(both)).toEqual([60, 60]);
  });

  it.concurrent('is paused by the server when a batch fails beyond its tolerance', async () => {
    const schedule = await ScheduleOfTest.open({ durationMs: 300, outcome: 'failed' });
    await schedule.create({
      spec: { intervals: [{ every: '1s' }] },
      policies: { pauseOnFailure: true },
      tolerate: { items: 0 },
    });
    const { state } = await schedule.describedWhen((now) => now.state.paused);
    expect(state.note).toContain('paused due to workflow failure');
    const [batchId = null] = await schedule.batchIds();
    expect(await schedule.ended(batchId)).toMatchObject({ state: 'tolerance-exceeded' });
    expect(schedule.posts()).toHaveLength(1);
  });

  it.concurrent('sends what an update has given it, and keeps what is not given', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({
      spec: { cronExpressions: ['0 0 1 1 *'], jitter: '3s', endAt: new Date('2099-01-01') },
      policies: { overlap: 'BUFFER_ALL' },
      state: { paused: true, note: 'new' },
    });
    const item = { ...schedule.request, prompt: 'Fix the links.' };
    await schedule.handle.update({
      items: [item, item],
      spec: { intervals: [{ every: '24h' }], endAt: null },
      concurrency: 7,
    });
    const { spec, policies, state, action } = await schedule.handle.describe();
    expect(spec).toMatchObject({ calendars: [], intervals: [{ every: 86_400_000 }], jitter: 3_000 });
    expect(spec.endAt).toBeUndefined();
    expect({ policies, state }).toMatchObject({
      policies: { overlap: 'BUFFER_ALL' },
      state: { paused: true, note: 'new' },
    });
    expect(action).toMatchObject({
      args: [{ concurrency: 7 }],
      staticSummary: `Batch of 2 follow-ups by the schedule \`${schedule.id}\``,
    });
    await schedule.handle.trigger();
    await schedule.sent(2);
    expect(schedule.posts().map(({ prompt }) => prompt?.text)).toEqual(['Fix the links.', 'Fix the links.']);
  });

  it.concurrent('fires for times that have passed, and for none of them twice', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({ ...DAILY, state: { paused: true } });
    const range = {
      start: new Date('2026-01-10T03:00:00Z'),
      end: new Date('2026-01-12T02:59:59Z'),
      overlap: 'BUFFER_ALL',
    } as const;
    await schedule.handle.backfill(range);
    await schedule.describedWhen(
      ({ info }) => info.numActionsTaken === 2 && info.runningActions.length === 0,
    );
    expect((await schedule.batchIds()).sort()).toEqual([
      `${schedule.id}-2026-01-10T03:00:00Z`,
      `${schedule.id}-2026-01-11T03:00:00Z`,
    ]);
    await schedule.handle.backfill(range);
    // The server takes them in turn: when this firing has started, the repeated ones have been looked at.
    const last = new Date('2026-01-12T03:00:00Z');
    await schedule.handle.backfill({ start: last, end: last, overlap: 'BUFFER_ALL' });
    await schedule.describedWhen(({ info }) => info.numActionsTaken === 3);
    await schedule.sent(3);
    expect(schedule.posts()).toHaveLength(3);
  });

  it.concurrent('is not replaced by another one of its id', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create(DAILY);
    const again = schedule.create({ spec: {} });
    await expect(again).rejects.toThrow(ConflictError);
    await expect(again).rejects.toThrow('Use update to change it');
    expect((await schedule.handle.describe()).spec.calendars).toHaveLength(1);
  });

  it.concurrent('keeps what somebody else has set of it', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create(DAILY);
    await schedule.temporal.update((previous) => ({
      ...previous,
      spec: {
        ...previous.spec,
        calendars: [{ hour: { start: 8, end: 18 }, dayOfWeek: 'MONDAY', comment: 'in office hours' }],
        skip: [{ month: 'DECEMBER', hour: 3 }],
      },
      action: {
        ...previous.action,
        workflowExecutionTimeout: '48h',
        workflowTaskTimeout: '90s',
        memo: { ...previous.action.memo, team: 'docs' },
        staticSummary: 'Nightly, by the docs team',
        staticDetails: 'Ask the docs team.',
        priority: { priorityKey: 2 },
      },
    }));
    await schedule.handle.update({ concurrency: 2, spec: { jitter: '1m' } });
    const { spec, action } = await schedule.temporal.describe();
    expect(spec).toMatchObject({
      calendars: [{ hour: [{ start: 8, end: 18 }], comment: 'in office hours' }],
      skip: [{ month: [{ start: 'DECEMBER' }] }],
      jitter: 60_000,
    });
    expect(action).toMatchObject({
      workflowExecutionTimeout: 172_800_000,
      workflowTaskTimeout: 90_000,
      memo: { team: 'docs' },
      staticSummary: 'Nightly, by the docs team',
      staticDetails: 'Ask the docs team.',
      priority: { priorityKey: 2 },
      args: [{ concurrency: 2, items: [{ request: { prompt: 'Rebase on main.' } }] }],
    });
  });

  it.concurrent.each([
    [{ cronExpressions: ['60 3 * * *'] }, 'spec: is refused: Minute is not in range [0-59]'],
    [{ intervals: [{ every: '6h', offset: '7h' }] }, 'spec: is refused: phase cannot be greater'],
    [{ calendars: [{ hour: 25 }] }, 'spec: is refused: Invalid CalendarSpec component for field hour'],
    [{ timezone: 'Europe/Berlim' }, 'spec: is refused: unknown time zone Europe/Berlim'],
  ])('is not made of %j: %s', async (spec, problem) => {
    const schedule = await ScheduleOfTest.open();
    await expect(schedule.create({ spec })).rejects.toThrow(problem);
    await schedule.create(UNTIL_TRIGGERED);
    await expect(schedule.handle.update({ spec })).rejects.toThrow(problem);
  });

  it.concurrent('whose items somebody has broken by hand fails when it fires, and is healed', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create(DAILY);
    await schedule.temporal.update((previous) => ({
      ...previous,
      action: { ...previous.action, args: [{ items: [{}] }] },
    }));
    const { batchId } = await schedule.handle.trigger();
    expect(await schedule.ended(batchId)).toMatchObject({
      message: expect.stringContaining('Invalid batch: item 1: request'),
    });
    await schedule.handle.update({ items: [schedule.request] });
    await schedule.handle.trigger();
    await schedule.sent(1);
  });

  it.concurrent('is listed with its next time and its last firing, and gone when deleted', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({ spec: { ...DAILY.spec, timezone: 'Asia/Tokyo' } });
    const { batchId } = await schedule.handle.trigger();
    const found = await eventually('it is listed', () => schedule.listed(), {
      until: (listed) => listed.info.recentActions.length === 1,
    });
    expect(found.info.nextActionTimes[0]?.toISOString()).toMatch(/T18:00:00.000Z$/);
    expect(found.info.recentActions[0]?.action.workflow.workflowId).toBe(`follow-up-batch:${batchId ?? ''}`);
    await schedule.handle.delete();
    await eventually('it is listed no more', async () => (await schedule.listed()) === undefined);
    await expect(schedule.handle.describe()).rejects.toThrow('There is no schedule');
  });

  it.concurrent(
    'that starts other workflows, with a memo that nobody here can read, is not touched',
    async () => {
      const schedule = await ScheduleOfTest.open();
      const { client } = await open();
      const encrypting = new Client({
        connection: client.connection,
        dataConverter: { payloadCodecs: [{ encode: encrypted, decode: encrypted }] },
      });
      await encrypting.schedule.create({
        scheduleId: schedule.id,
        spec: { intervals: [{ every: 3_600_000 }] },
        action: { type: 'startWorkflow', workflowType: 'other', taskQueue: 'nobody' },
        memo: { secret: 'x' },
      });
      await eventually('it is listed', async () => {
        const { schedules } = await client.workflowService.listSchedules({ namespace: 'default' });
        return schedules.some(({ scheduleId }) => scheduleId === schedule.id);
      });
      expect(await schedule.listed()).toBeUndefined();
      await expect(schedule.create(UNTIL_TRIGGERED)).rejects.toThrow(ConflictError);
      const refused = 'does not start follow-up batches; it starts "other"';
      const { handle } = schedule;
      const now = new Date();
      for (const call of [
        () => handle.trigger(),
        () => handle.pause(),
        () => handle.unpause(),
        () => handle.backfill({ start: now, end: now }),
        () => handle.update({ concurrency: 2 }),
        () => handle.delete(),
      ])
        await expect(call()).rejects.toThrow(refused);
      const request = { namespace: 'default', scheduleId: schedule.id };
      const there = await client.workflowService.describeSchedule(request);
      expect(there.schedule?.action?.startWorkflow?.workflowType?.name).toBe('other');
    },
  );
});

describe('what no schedule can be', () => {
  it.concurrent('is refused before anything is made: a requestId, too many bytes, a bad id', async () => {
    const schedule = await ScheduleOfTest.open();
    const { schedules, request, id } = schedule;
    await expect(schedule.create(UNTIL_TRIGGERED, { ...request, requestId: 'order-1' })).rejects.toThrow(
      'item 1: requestId: must not be given in a schedule',
    );
    const large = Array.from({ length: 5 }, (_, item) => ({ ...request, prompt: `${item}`.repeat(250_000) }));
    await expect(schedules.create(id, large, UNTIL_TRIGGERED)).rejects.toThrow(
      /items: 1\.2 MiB as JSON, and a schedule holds 1 MiB at most; let cron run the starter's command "batch run"/,
    );
    await expect(schedules.create('a/b', large, UNTIL_TRIGGERED)).rejects.toThrow(InvalidRequestError);
    await expect(schedule.create({ ...DAILY, concurrency: 0 })).rejects.toThrow(
      'concurrency: must be a whole',
    );
    await expect(schedule.create({ ...DAILY, tolerate: { percent: 101 } })).rejects.toThrow(
      'tolerate: must be { items: N }',
    );
    await expect(schedule.handle.describe()).rejects.toThrow('There is no schedule');
  });

  it.concurrent('is a full mebibyte of items, which it holds and sends', async () => {
    const schedule = await ScheduleOfTest.open();
    const { schedules, request, id } = schedule;
    const items = Array.from({ length: 4 }, (_, item) => ({ ...request, prompt: `${item}`.repeat(258_000) }));
    const handle = await schedules.create(id, items, UNTIL_TRIGGERED);
    await handle.trigger();
    await schedule.sent(4);
    expect(schedule.posts().map(({ prompt }) => prompt?.length)).toEqual(items.map(() => 258_000));
  });
});

/** A codec whose key is somebody else's. */
function encrypted(payloads: Payload[]): Promise<Payload[]> {
  const metadata = { encoding: Buffer.from('binary/encrypted') };
  return Promise.resolve(payloads.map(({ data }) => ({ metadata, ...(data ? { data } : {}) })));
}
