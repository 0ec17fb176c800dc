import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { sharedEnvironment } from '../../harness/shared-environment';
import { type Ended, QUICK_FLAGS, starter } from './starter';

const open = sharedEnvironment({ sandbox: { turnMs: 300 } });

const made: string[] = [];
afterAll(async () => {
  const { client } = await open();
  for (const id of made) {
    await client.schedule
      .getHandle(id)
      .delete()
      .catch(() => undefined);
  }
});

/** The words `schedule …`, for a schedule and a job of its own. */
async function stage() {
  const environment = await open();
  const id = `cli-${randomUUID().slice(0, 8)}`;
  made.push(id);
  const { projectId, jobId } = environment.sandbox.addJob({ projectId: id, turn: { durationMs: 300 } });
  const csv = `project,job,prompt\n${projectId},${jobId},Rebase on main.\n`;
  const run = (words: readonly string[], stdin = csv): Promise<Ended> =>
    starter(environment, ['schedule', ...words], stdin);
  const create = (...more: string[]) =>
    run(['create', id, '-', '--cron', '0 0 1 1 *', ...QUICK_FLAGS, ...more]);
  const json = async <Document>(...words: string[]): Promise<Document> =>
    JSON.parse((await run([...words, '--json'])).stdout) as Document;
  const posts = () => environment.sandbox.journal.entries({ projectId, operation: 'message' });
  return { environment, id, csv, run, create, json, posts };
}

interface Described {
  readonly paused: boolean;
  readonly recent: readonly { readonly batchId: string; readonly state: string }[];
}

describe('schedule create', () => {
  it.concurrent('makes a schedule, which describe shows; again it changes nothing', async () => {
    const { id, run, create } = await stage();
    const options = ['--timezone', 'Europe/Berlin', '--tolerate', '5%', '--note', 'each year', '--paused'];
    const first = await create(...options);
    expect(first).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(first.stderr).toMatch(/^created$/m);
    expect(first.stderr).toContain(`npm run starter -- schedule unpause ${id}`);
    const again = await create(...options);
    expect(again).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(again.stderr).toMatch(/^exists already, unchanged$/m);
    const { stdout } = await run(['describe', id]);
    expect(stdout).toMatch(/^state +paused$/m);
    expect(stdout).toMatch(/^note +each year$/m);
    expect(stdout).toMatch(/^timing +cron 0 0 1 1 \*$/m);
    expect(stdout).toMatch(/^timezone +Europe\/Berlin$/m);
    expect(stdout).toMatch(/^items +1 to 1 job of 1 project$/m);
    expect(stdout).toMatch(/^overlap +skip$/m);
    expect(stdout).toMatch(/^catch-up window +10m$/m);
    expect(stdout).toMatch(/^tolerance +5% failures$/m);
  });

  it.concurrent('says what differs from the one that there is, and names schedule update', async () => {
    const { create } = await stage();
    await create();
    const { code, stdout, stderr } = await create('--overlap', 'allow-all', '--json');
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ type: 'ScheduleExists' });
    expect(stderr).toContain('exists and differs: overlap: skip, and not allow-all. Nothing was changed.');
    expect(stderr).toContain('"schedule update"');
  });

  it.concurrent('tells every problem of the flags at once, and sends nothing', async () => {
    const { id, run } = await stage();
    const { code, stdout, stderr } = await run([
      ...['create', id, '-', '--cron', '@every 5m', '--calendar', '{"hours":"3"}', '--calendar', 'hour=3'],
      ...['--every', '100ms', '--overlap', 'never', '--jitter', '5', '--catchup-window', '1s'],
      ...['--start-at', 'tomorrow'],
    ]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    for (const words of [
      '--cron: "@every 5m" is an interval',
      '--calendar: "hours" is not a field of a calendar; the fields are ',
      '--calendar: must be an object such as {"dayOfWeek":"Fri","hour":"3"}; it is "hour=3"',
      '--every: must be whole seconds',
      '--overlap: must be one of skip, buffer-one, buffer-all, allow-all, cancel-other, terminate-other',
      '--jitter: "5" needs a unit',
      '--catchup-window: must be at least 10s',
      '--start-at: "tomorrow" is not an ISO 8601 date-time with an offset',
    ])
      expect(stderr).toContain(words);
    expect((await run(['describe', id])).code).toBe(2);
  });

  it.concurrent.each([
    [['--cron', '0 25 * * *'], '--cron: the server refuses it: Hour is not in range [0-23]'],
    [
      ['--calendar', '{"dayOfWeek":"Fry"}'],
      '--calendar: the server refuses it: DayOfWeek is not in range [0-7]',
    ],
    [
      ['--every', '6h', '--offset', '7h'],
      '--offset: the server refuses it: phase cannot be greater than Interval',
    ],
    [
      ['--cron', '@daily', '--timezone', 'Berlin'],
      '--timezone: the server refuses it: unknown time zone Berlin',
    ],
  ])('tells what the server refuses, by the flag: %j', async (words, problem) => {
    const { id, run } = await stage();
    const { code, stdout, stderr } = await run(['create', id, '-', ...words]);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: `error: ${problem}\n` });
  });

  it.concurrent('wants to know when', async () => {
    const { id, run } = await stage();
    const { code, stderr } = await run(['create', id, '-']);
    expect(code).toBe(2);
    expect(stderr).toBe('error: the timing is missing; give --cron, --calendar or --every\n');
  });

  it.concurrent.each([
    ['an id with a slash', 'a/b', undefined, /^error: ID: must be made of letters/],
    ['a line without a job', undefined, 'project,job,prompt\np,,x\n', /line 2: job: /],
    [
      'a request id',
      undefined,
      'project,job,prompt,request_id\np,j,x,\np,j,x,r-1\n',
      /line 3: request_id: must not be given in a schedule: the same name is never sent twice/,
    ],
    [
      'too much for a schedule',
      undefined,
      `project,job,prompt\n${Array.from({ length: 6 }, () => `p,j,${'x'.repeat(200_000)}\n`).join('')}`,
      /FILE: 1\.1 MiB as JSON, and a schedule holds 1 MiB at most; let cron run the starter's command "batch run"/,
    ],
  ])('refuses %s', async (_, badId, badInput, words) => {
    const { id, run, csv } = await stage();
    const { code, stderr } = await run(
      ['create', badId ?? id, '-', '--every', '1h', '--prompt', 'x'],
      badInput ?? csv,
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(words);
  });
});

describe('a schedule', () => {
  it.concurrent('is triggered, and tells the end of its batch', async () => {
    const { id, run, create, json, posts } = await stage();
    await create();
    const { code, stdout, stderr } = await run(['trigger', id]);
    expect(code).toBe(0);
    const batchId = stdout.trim();
    expect(stderr).toContain(`npm run starter -- batch watch ${batchId}`);
    const { recent } = await eventually('its batch is done', () => json<Described>('describe', id), {
      until: (schedule) => schedule.recent[0]?.state === 'done',
    });
    expect(recent).toEqual([expect.objectContaining({ batchId, state: 'done', settled: 1, failures: 0 })]);
    expect((await run(['describe', id])).stdout).toMatch(
      new RegExp(`^\\S+Z  ${batchId}  done, 1 of 1 settled, no failure$`, 'm'),
    );
    expect(posts()).toHaveLength(1);
  });

  it.concurrent('is paused and unpaused with a note', async () => {
    const { id, run, create, json } = await stage();
    await create();
    expect(await json('pause', id, '--note', 'holidays')).toEqual({
      scheduleId: id,
      paused: true,
      note: 'holidays',
    });
    expect(await json('describe', id)).toMatchObject({ paused: true, note: 'holidays', next: [] });
    expect((await run(['unpause', id])).stderr).toBe('unpaused\n');
    expect(await json('describe', id)).toMatchObject({
      paused: false,
      next: expect.arrayContaining([expect.any(String)]),
    });
  });

  it.concurrent('is updated by what is given; the flags of items need a file', async () => {
    const { id, run, create, json } = await stage();
    await create('--pause-on-failure', '--tolerate', '1', '--end-at', '2099-01-01T00:00Z');
    const updated = await run([
      ...[
        'update',
        id,
        '--calendar',
        '{"hour":"3"}',
        '--no-pause-on-failure',
        '--no-tolerate',
        '--no-end-at',
      ],
      ...['--task-queue', 'elsewhere'],
    ]);
    expect(updated).toMatchObject({ code: 0, stderr: 'updated\n' });
    expect(updated.stdout).toMatch(/^timing +cron 0 0 1 1 \* → cron 0 0 3 \* \* \* \*$/m);
    expect(await json('describe', id)).toMatchObject({
      items: { count: 1 },
      settings: {
        timing: [{ kind: 'cron', text: '0 0 3 * * * *' }],
        pauseOnFailure: false,
        tolerate: null,
        endAt: null,
        taskQueue: 'elsewhere',
      },
    });
    const same = await run(['update', id, '--calendar', '{"hour":"3"}', '--json']);
    expect(JSON.parse(same.stdout)).toEqual({ scheduleId: id, changed: [] });
    const withoutFile = await run(['update', id, '--prompt', 'Fix the links.']);
    expect(withoutFile).toMatchObject({ code: 2, stderr: expect.stringContaining('FILE: is missing') });
    const withFile = await run(['update', id, '-', '--deadline', '3h', '--json']);
    expect(JSON.parse(withFile.stdout)).toMatchObject({ changed: [{ what: 'items' }] });
  });

  it.concurrent('is backfilled for a range that holds a time of it', async () => {
    const { id, run, create, json } = await stage();
    await create('--paused');
    const range = ['--from', '2025-06-01T00:00Z', '--to', '2026-06-01T00:00Z'];
    const filled = await run(['backfill', id, ...range]);
    expect(filled).toMatchObject({ code: 0, stdout: '2026-01-01T00:00:00.000Z\n' });
    expect(await json('backfill', id, ...range, '--overlap', 'skip')).toEqual({
      scheduleId: id,
      times: ['2026-01-01T00:00:00.000Z'],
      overlap: 'skip',
    });
    const empty = await run(['backfill', id, '--from', '2026-02-01T00:00Z', '--to', '2026-03-01T00:00Z']);
    expect(empty).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--from, --to: the schedule has no time'),
    });
    const bad = await run(['backfill', id, '--from', 'yesterday', '--to', '2026-01-01']);
    expect(bad.code).toBe(2);
    expect(bad.stderr).toMatch(
      /--from: "yesterday" is not an ISO 8601 .*\n.*--to: "2026-01-01" is not an ISO 8601 /,
    );
    expect((await run(['backfill', id])).code).toBe(2);
  });

  it.concurrent('is listed, and deleted', async () => {
    const { id, run, create, json } = await stage();
    await create('--timezone', 'Asia/Tokyo');
    await eventually('it is listed', () => json<{ scheduleId: string }[]>('list'), {
      until: (found) => found.some(({ scheduleId }) => scheduleId === id),
    });
    const { stdout, stderr } = await run(['list']);
    expect(stdout).toMatch(/^SCHEDULE +STATE +FIRES +NEXT +LAST +ITS END$/m);
    expect(stdout).toMatch(
      new RegExp(`^${id} +active +cron 0 0 1 1 \\* \\(Asia/Tokyo\\) +\\S+-12-31T15:00:00Z +- +-$`, 'm'),
    );
    expect(stderr).toContain('eventually consistent');
    expect(await json('delete', id)).toEqual({ scheduleId: id, deleted: true, running: [] });
    expect((await run(['describe', id])).code).toBe(2);
  });
});

it('an id of nothing is an error of usage, for every command that takes one', async () => {
  const { run } = await stage();
  const range = ['--from', '2026-01-01T00:00Z', '--to', '2026-01-02T00:00Z'];
  for (const words of [
    ['describe', 'nothing'],
    ['trigger', 'nothing'],
    ['pause', 'nothing'],
    ['unpause', 'nothing'],
    ['backfill', 'nothing', ...range],
    ['update', 'nothing', '--jitter', '1m'],
    ['delete', 'nothing'],
  ]) {
    const { code, stderr } = await run(words);
    expect({ words, code }).toEqual({ words, code: 2 });
    expect(stderr).toContain('There is no schedule "nothing" in the namespace default');
  }
  expect((await run(['trigger', 'nothing', '--overlap', 'x'])).stderr).toContain('--overlap: must be one of');
  expect((await run([])).code).toBe(2);
});
