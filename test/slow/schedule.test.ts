import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { defineSearchAttributeKey, type Payload } from '@temporalio/common';
import {
  type Firing,
  InvalidScheduleError,
  type ListedSchedule,
  type NewScheduleSpec,
  type ScheduleDescription,
  ScheduleExistsError,
  type ScheduleHandle,
} from '../../src/client';
import type { BatchInput } from '../../src/core/batch-workflows';
import type { FollowUpRequest } from '../../src/core/request';
import { pageWorkflowId, runOf } from '../../src/core/ids';
import { taskSeconds } from '../harness/batch-of-test';
import { eventually } from '../harness/eventually';
import { type Environment, QUICK } from '../harness/environment';
import { sharedEnvironment } from '../harness/shared-environment';
import { clientOf } from '../client/client-under-test';

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

  async create(spec: NewScheduleSpec, request = this.request) {
    return (await this.schedules.create(this.id, [request], spec)).made;
  }

  async listed(): Promise<ListedSchedule | undefined> {
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

  /** The names of the follow-ups of a firing. */
  async requestIds({ batchId }: Pick<Firing, 'batchId'>): Promise<string[]> {
    const ends = await clientOf(this.environment).batches.getHandle(batchId).settled();
    return ends.map(({ requestId }) => requestId);
  }
}

const isDone = ({ state }: Firing) => state === 'done';
const UNTIL_TRIGGERED = { cron: ['0 0 1 1 *'], paused: true } as const;

describe('a schedule', () => {
  it.concurrent(
    'sends again at each firing, as a batch of its own; skips while one runs; and rests when paused',
    async () => {
      const schedule = await ScheduleOfTest.open({ durationMs: null });
      expect(await schedule.create({ intervals: [{ every: '2s' }] })).toBe('created');
      await schedule.sent(1);
      const held = await schedule.describedWhen(({ counts }) => counts.skipped > 0);
      expect(held.counts.started).toBe(1);
      expect(held.running).toEqual([held.recent[0]?.batchId]);
      expect(schedule.posts()).toHaveLength(1);

      schedule.completeJob();
      await schedule.sent(2);
      await schedule.handle.pause('enough of it');
      schedule.completeJob();
      const { recent, ...paused } = await schedule.describedWhen(
        ({ recent: all, running }) => all.length === 2 && all.every(isDone) && running.length === 0,
      );
      expect(paused).toMatchObject({ paused: true, note: 'enough of it', next: [] });
      const [second, first] = recent;
      expect(recent).toEqual([
        expect.objectContaining({ state: 'done', items: 1, settled: 1, failures: 0, message: null }),
        expect.objectContaining({ state: 'done', items: 1, settled: 1, failures: 0, message: null }),
      ]);
      expect(first?.batchId).toBe(`${schedule.id}-${(first?.scheduledAt ?? '').slice(0, 19)}Z`);
      expect(second?.batchId).not.toBe(first?.batchId);
      for (const firing of recent) {
        expect(await schedule.requestIds(firing)).toEqual([expect.stringMatching(`^${firing.batchId}-`)]);
      }
      expect(schedule.posts().map(({ prompt }) => prompt?.text)).toEqual([
        'Rebase on main.',
        'Rebase on main.',
      ]);
    },
  );

  it.concurrent('fires when triggered, paused as it is; and not while one runs, unless told to', async () => {
    const schedule = await ScheduleOfTest.open({ durationMs: null });
    await schedule.create(UNTIL_TRIGGERED);
    const first = await schedule.handle.trigger();
    expect(first).toEqual({ outcome: 'started', batchId: expect.stringContaining(`${schedule.id}-`) });
    await schedule.sent(1);
    expect(await schedule.handle.trigger()).toEqual({ outcome: 'skipped', batchId: null });
    // One after the other within a second, whose batch ids must differ nevertheless.
    const second = await schedule.handle.trigger({ overlap: 'allow-all' });
    const third = await schedule.handle.trigger({ overlap: 'allow-all' });
    expect([second.outcome, third.outcome]).toEqual(['started', 'started']);
    await schedule.sent(3);
    schedule.completeJob();
    const { recent, paused } = await schedule.describedWhen(({ recent: all }) => all.every(isDone));
    const ids = recent.map(({ batchId }) => batchId);
    expect(ids).toEqual([third.batchId, second.batchId, first.batchId]);
    expect(new Set(ids).size).toBe(3);
    expect(paused).toBe(true);
  });

  it.concurrent('is told from its batches: by their summary, and its id as a search attribute', async () => {
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
    await schedule.create({ intervals: [{ every: '1s' }], tolerate: { items: 0 }, pauseOnFailure: true });
    const { recent, note } = await schedule.describedWhen(({ paused }) => paused);
    expect(recent).toEqual([
      expect.objectContaining({ state: 'tolerance-exceeded', items: 1, settled: 1, failures: 1 }),
    ]);
    expect(note).toContain('paused due to workflow failure');
    expect(schedule.posts()).toHaveLength(1);
  });

  it.concurrent('sends what an update has given it, at the times of the update', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({ ...UNTIL_TRIGGERED, note: 'new', jitter: '3s', overlap: 'buffer-all' });
    const item = { ...schedule.request, prompt: 'Fix the links.' };
    const items = [item, item];
    const changed = await schedule.handle.update({ items, intervals: [{ every: '24h' }], concurrency: 7 });
    expect(changed.map(({ what }) => what)).toEqual(['timing', 'concurrency', 'items']);
    expect(await schedule.handle.update({ items, intervals: [{ every: '24h' }] })).toEqual([]);
    const { settings, ...rest } = await schedule.handle.describe();
    expect(rest).toMatchObject({ paused: true, note: 'new', items: { count: 2, jobs: 1 } });
    expect(settings).toMatchObject({
      timing: [{ kind: 'every', everyMs: 86_400_000, offsetMs: 0 }],
      jitterMs: 3_000,
      overlap: 'buffer-all',
      concurrency: 7,
    });
    await schedule.handle.trigger();
    await schedule.sent(2);
    expect(schedule.posts().map(({ prompt }) => prompt?.text)).toEqual(['Fix the links.', 'Fix the links.']);
  });

  it.concurrent('fires for times that have passed, and for none of them twice', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({ cron: ['0 3 * * *'], paused: true });
    const nights = ['2026-01-10T03:00:00.000Z', '2026-01-11T03:00:00.000Z'];
    const range = { start: '2026-01-10T03:00:00Z', end: new Date('2026-01-12T02:59:59Z') };
    const filled = await schedule.handle.backfill(range);
    expect(filled).toEqual({ times: nights, overlap: 'buffer-all' });
    const bothDone = ({ recent }: ScheduleDescription) => recent.length === 2 && recent.every(isDone);
    const { recent } = await schedule.describedWhen(bothDone);
    expect(recent.map(({ batchId }) => batchId).sort()).toEqual([
      `${schedule.id}-2026-01-10T03:00:00Z`,
      `${schedule.id}-2026-01-11T03:00:00Z`,
    ]);
    await schedule.handle.backfill(range);
    // The server takes them in turn: when this firing has ended, the repeated ones have been looked at.
    await schedule.handle.backfill({ start: '2026-01-12T03:00:00Z', end: '2026-01-12T03:00:00Z' });
    await schedule.describedWhen((all) => all.recent.some(isBatch(`${schedule.id}-2026-01-12T03:00:00Z`)));
    expect(schedule.posts()).toHaveLength(3);
    await expect(
      schedule.handle.backfill({ start: '2026-01-10T04:00:00Z', end: '2026-01-10T05:00:00Z' }),
    ).rejects.toThrow('the schedule has no time between them');
  });

  it.concurrent('stays as it is when it is made again, and is not replaced by another one', async () => {
    const schedule = await ScheduleOfTest.open();
    const options = {
      cron: ['0 3 * * MON-FRI', '@monthly'],
      calendars: [{ hour: '12', dayOfWeek: 'Sat' }],
      intervals: [{ every: '90m', offset: '15m' }, { every: '36h' }],
      timezone: 'Europe/Berlin',
      startAt: '2030-01-01T00:00:00Z',
      endAt: '2031-01-01T01:00+01:00',
      jitter: '30s',
      overlap: 'cancel-other',
      catchupWindow: '1h',
      pauseOnFailure: true,
      concurrency: 3,
      tolerate: { percent: 12.5 },
    } as const;
    expect(await schedule.create(options)).toBe('created');
    expect(await schedule.create(options)).toBe('unchanged');
    const other = schedule.create(
      { ...options, overlap: 'skip', timezone: 'UTC' },
      { ...schedule.request, prompt: 'another' },
    );
    await expect(other).rejects.toThrow(ScheduleExistsError);
    await expect(other).rejects.toMatchObject({
      differences: [
        'timezone: Europe/Berlin, and not UTC',
        'overlap: cancel-other, and not skip',
        expect.stringMatching(/^items: 1 \(\w+\), and not 1 \(\w+\)$/),
      ],
    });
    const { settings, next } = await schedule.handle.describe();
    expect(settings).toMatchObject({ overlap: 'cancel-other', timezone: 'Europe/Berlin' });
    expect(Date.parse(next[0] ?? '')).toBeGreaterThanOrEqual(Date.parse('2030-01-01T00:00:00Z'));
  });

  it.concurrent('keeps what somebody else has set of it and this client does not know', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({ cron: ['0 3 * * *'] });
    await schedule.temporal.update((previous) => ({
      ...previous,
      spec: {
        ...previous.spec,
        calendars: [{ hour: { start: 8, end: 18 }, dayOfWeek: 'MONDAY', comment: 'in office hours' }],
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
    const { settings } = await schedule.handle.describe();
    expect(settings.timing).toEqual([
      { kind: 'calendar', text: '{"hour":"8-18","dayOfWeek":"MONDAY","comment":"in office hours"}' },
    ]);
    const changed = await schedule.handle.update({ concurrency: 2 });
    expect(changed).toEqual([{ what: 'concurrency', before: '50', after: '2' }]);
    const { spec, action } = await schedule.temporal.describe();
    expect(spec.calendars).toMatchObject([
      { hour: [{ start: 8, end: 18 }], dayOfWeek: [{ start: 'MONDAY' }], comment: 'in office hours' },
    ]);
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
    [{ cron: ['60 3 * * *'] }, 'cron: the server refuses it: Minute is not in range [0-59]'],
    [{ calendars: [{ hour: '25' }] }, 'calendar: the server refuses it: Hour is not in range [0-23]'],
    [
      { intervals: [{ every: '6h', offset: '7h' }] },
      'offset: the server refuses it: phase cannot be greater',
    ],
    [
      { cron: ['@daily'], timezone: 'Europe/Berlim' },
      'timezone: the server refuses it: unknown time zone Europe/Berlim',
    ],
  ] as const)('is not made of %j: %s', async (spec, problem) => {
    const schedule = await ScheduleOfTest.open();
    await expect(schedule.create(spec)).rejects.toThrow(problem);
    await schedule.create(UNTIL_TRIGGERED);
    await expect(schedule.handle.update(spec)).rejects.toThrow(problem);
  });

  it.concurrent('leaves times that somebody else has excluded as they are', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({ cron: ['0 3 * * *'] });
    await schedule.temporal.update((previous) => ({
      ...previous,
      spec: { ...previous.spec, skip: [{ month: 'DECEMBER', hour: 3 }] },
    }));
    await schedule.handle.update({ jitter: '1m' });
    const { spec } = await schedule.temporal.describe();
    expect(spec).toMatchObject({ skip: [{ month: [{ start: 'DECEMBER' }] }], jitter: 60_000 });
  });

  it.concurrent(
    'whose items somebody has broken by hand says so, fails when it fires, and is healed',
    async () => {
      const schedule = await ScheduleOfTest.open();
      await schedule.create({ cron: ['0 3 * * *'] });
      await schedule.temporal.update((previous) => ({
        ...previous,
        action: { ...previous.action, args: [{ items: [{}] }] },
      }));
      const { batchId } = await schedule.handle.trigger();
      const { recent } = await schedule.describedWhen((each) =>
        each.recent.some(({ state }) => state !== 'running'),
      );
      expect(recent).toMatchObject([
        { batchId, message: expect.stringContaining('Invalid batch: item 1: request') },
      ]);
      await expect(schedule.handle.update({ jitter: '1m' })).rejects.toThrow(
        'items: as they are in the schedule, item 1: request',
      );
      await schedule.handle.update({ items: [schedule.request] });
      await schedule.handle.trigger();
      await schedule.sent(1);
    },
  );

  it.concurrent(
    'to which somebody has added an item or a tolerance by hand that is none says so, and an update heals it',
    async () => {
      const schedule = await ScheduleOfTest.open();
      await schedule.create({ cron: ['0 3 * * *'] });
      const edit = (change: object) =>
        schedule.temporal.update((previous) => {
          const [input] = previous.action.args as [BatchInput];
          return { ...previous, action: { ...previous.action, args: [{ ...input, ...change }] } };
        });
      const [input] = (await schedule.temporal.describe()).action.args as [BatchInput];
      await edit({ items: [...(input.items ?? []), {}] });
      expect(await schedule.handle.update({ items: [schedule.request] })).toMatchObject([{ what: 'items' }]);
      await edit({ tolerate: 'all' });
      expect((await schedule.handle.describe()).settings.tolerate).toBe('all');
      await expect(schedule.handle.update({ jitter: '1m' })).rejects.toThrow(
        'tolerate: as it is in the schedule, "all" is not a tolerance; give it again',
      );
      expect(await schedule.handle.update({ tolerate: { items: 2 } })).toMatchObject([
        { what: 'tolerance', before: 'not a tolerance: "all"', after: '2 failures' },
      ]);
      expect(await schedule.handle.update({ tolerate: { items: 2 } })).toEqual([]);
    },
  );

  it.concurrent('keeps a summary that was set by hand while its items stay as they are', async () => {
    const schedule = await ScheduleOfTest.open();
    await schedule.create({ cron: ['0 3 * * *'] });
    await schedule.temporal.update((previous) => ({
      ...previous,
      action: { ...previous.action, staticSummary: 'Set by hand' },
    }));
    await schedule.handle.update({ items: [schedule.request], jitter: '1m' });
    expect((await schedule.temporal.describe()).action.staticSummary).toBe('Set by hand');
  });

  it.concurrent(
    'is listed with its next time and the end of its last firing, and gone when deleted',
    async () => {
      const schedule = await ScheduleOfTest.open();
      await schedule.create({ cron: ['0 3 * * *'], timezone: 'Asia/Tokyo' });
      const { batchId } = await schedule.handle.trigger();
      await schedule.describedWhen(({ recent }) => recent.length === 1 && recent.every(isDone));
      const found = await eventually('it is listed with its end', () => schedule.listed(), {
        until: ({ last }) => last?.batchId === batchId,
      });
      expect(found).toMatchObject({
        paused: false,
        timing: [{ kind: 'cron', text: '0 3 * * *' }],
        timezone: 'Asia/Tokyo',
        next: expect.arrayContaining([expect.stringMatching('T18:00:00.000Z$')]),
        last: { state: 'done', settled: 1, items: 1 },
      });
      await schedule.handle.delete();
      await eventually('it is listed no more', async () => (await schedule.listed()) === undefined);
      await expect(schedule.handle.describe()).rejects.toThrow('There is no schedule');
    },
  );

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
      await expect(schedule.create(UNTIL_TRIGGERED)).rejects.toThrow('it starts "other"');
      await expect(schedule.handle.delete()).rejects.toThrow('it starts "other"');
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
      'items: item 1: requestId: must not be given in a schedule',
    );
    const large = Array.from({ length: 5 }, (_, item) => ({ ...request, prompt: `${item}`.repeat(250_000) }));
    await expect(schedules.create(id, large, UNTIL_TRIGGERED)).rejects.toThrow(
      /items: 1\.2 MiB as JSON, and a schedule holds 1 MiB at most; let cron run the starter's command "batch run"/,
    );
    await expect(schedules.create('a/b', large, UNTIL_TRIGGERED)).rejects.toThrow(InvalidScheduleError);
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

function isBatch(id: string) {
  return ({ batchId, state }: Firing) => batchId === id && state === 'done';
}
