import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { sharedEnvironment } from '../../harness/shared-environment';
import { SWIFT_FLAGS, starter } from './starter';
import type { Ended } from '../command';

const { open } = sharedEnvironment({ sandbox: { turnMs: 300 } });

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
  const { projectId, jobId } = environment.addJob();
  const csv = `project,job,prompt\n${projectId},${jobId},Rebase on main.\n`;
  const run = (words: readonly string[], stdin = csv): Promise<Ended> =>
    starter(environment, ['schedule', ...words], stdin);
  const create = (...more: string[]) =>
    run(['create', id, '-', '--cron', '0 0 1 1 *', ...SWIFT_FLAGS, ...more]);
  const json = async <Document>(...words: string[]): Promise<Document> =>
    JSON.parse((await run([...words, '--json'])).stdout) as Document;
  const posts = () => environment.posts({ projectId });
  return { environment, id, csv, run, create, json, posts };
}

describe('schedule create', () => {
  it.concurrent(
    'makes a schedule, which describe shows, unpause and pause change; a second one is an error',
    async () => {
      const { id, run, create, json } = await stage();
      const options = ['--timezone', 'Europe/Berlin', '--tolerate', '5%', '--note', 'each year', '--paused'];
      const first = await create(...options);
      expect(first).toMatchObject({ code: 0, stdout: `${id}\n` });
      expect(first.stderr).toMatch(/^created$/m);
      expect(first.stderr).toContain(`npm run starter -- schedule unpause ${id}`);
      const { stdout } = await run(['describe', id]);
      expect(stdout).toMatch(/^state +paused$/m);
      expect(stdout).toMatch(/^next +none$/m);
      expect(stdout).toMatch(/^note +each year$/m);
      expect(stdout).toMatch(/^timezone +Europe\/Berlin$/m);
      expect(stdout).toMatch(/^items +1$/m);
      expect(stdout).toMatch(/^overlap +skip$/m);
      const again = await create(...options);
      expect(again.code).toBe(2);
      expect(again.stderr).toContain(
        `The schedule "${id}" exists. Nothing was changed. Use update to change it`,
      );
      expect((await run(['unpause', id])).stderr).toBe('unpaused\n');
      expect((await run(['describe', id])).stdout).toMatch(/^next +\d{4}-12-31T23:00:00Z/m);
      const state = { paused: true, note: 'holidays' };
      expect(await json('pause', id, '--note', 'holidays')).toEqual({ scheduleId: id, ...state });
      expect(await json('describe', id)).toMatchObject({ state });
    },
  );

  it.concurrent('sends every flag to the server', async () => {
    const { id, create, json } = await stage();
    await create(
      ...['--calendar', '{"dayOfWeek":"Fri","hour":"3","comment":"weekly"}'],
      ...['--every', '6h', '--offset', '30m'],
      ...['--start-at', '2030-01-01T00:00Z', '--end-at', '2031-01-01T01:00+01:00', '--jitter', '30s'],
      ...['--overlap', 'cancel-other', '--catchup-window', '1h', '--pause-on-failure', '--concurrency', '3'],
    );
    expect(await json('describe', id)).toMatchObject({
      spec: {
        calendars: [
          { month: [{ start: 'JANUARY' }] },
          { dayOfWeek: [{ start: 'FRIDAY' }], hour: [{ start: 3 }], comment: 'weekly' },
        ],
        intervals: [{ every: 21_600_000, offset: 1_800_000 }],
        startAt: '2030-01-01T00:00:00.000Z',
        endAt: '2031-01-01T00:00:00.000Z',
        jitter: 30_000,
      },
      policies: { overlap: 'CANCEL_OTHER', catchupWindow: 3_600_000, pauseOnFailure: true },
      batch: { items: 1, concurrency: 3 },
    });
  });

  it.concurrent.each([
    ['an id with a slash', 'a/b', undefined, /^error: ID: must be 1 to 79 letters/],
    ['a line without a job', undefined, 'project,job,prompt\np,,x\n', /line 2: job is missing/],
    [
      'a request id',
      undefined,
      'project,job,prompt,request_id\np,j,x,\np,j,x,r-1\n',
      /item 2: requestId: must not be given in a schedule: from the second firing on/,
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
  it.concurrent('is triggered, shows its batch, is listed, and deleted', async () => {
    const { id, run, create, json, posts } = await stage();
    await create('--timezone', 'Asia/Tokyo');
    const { code, stdout, stderr } = await run(['trigger', id]);
    expect(code).toBe(0);
    const batchId = stdout.trim();
    expect(stderr).toContain(`npm run starter -- batch watch ${batchId}`);
    const action = { workflow: { workflowId: `follow-up-batch:${batchId}` } };
    expect(await json('describe', id)).toMatchObject({ info: { recentActions: [{ action }] } });
    expect((await run(['describe', id])).stdout).toMatch(new RegExp(`^batches +${batchId}$`, 'm'));
    await eventually('its message is sent', () => posts().length === 1);
    await eventually('it is listed', () => json<{ scheduleId: string }[]>('list'), {
      until: (found) => found.some(({ scheduleId }) => scheduleId === id),
    });
    const list = await run(['list']);
    expect(list.stdout).toMatch(/^SCHEDULE +STATE +NEXT +LAST BATCH$/m);
    expect(list.stdout).toMatch(new RegExp(`^${id} +active +\\S+-12-31T15:00:00Z +(-|${batchId})$`, 'm'));
    expect(list.stderr).toContain('eventually consistent');
    expect(await json('delete', id)).toMatchObject({ scheduleId: id, deleted: true });
    expect((await run(['describe', id])).code).toBe(2);
  });

  it.concurrent('is updated by what is given; the flags of items need a file', async () => {
    const { id, run, create, json } = await stage();
    await create('--pause-on-failure', '--tolerate', '1', '--end-at', '2099-01-01T00:00Z');
    const updated = await run([
      ...['update', id, '--calendar', '{"hour":"3"}', '--task-queue', 'elsewhere'],
      ...['--no-pause-on-failure', '--no-tolerate', '--no-end-at'],
    ]);
    expect(updated).toMatchObject({ code: 0, stderr: 'updated\n' });
    const after = await json<{ spec: { endAt?: string } }>('describe', id);
    expect(after).toMatchObject({
      spec: { calendars: [{ hour: [{ start: 3 }], month: [{ start: 'JANUARY', end: 'DECEMBER' }] }] },
      policies: { pauseOnFailure: false },
      batch: { items: 1, tolerate: null, taskQueue: 'elsewhere' },
    });
    expect(after.spec.endAt).toBeUndefined();
    const withoutFile = await run(['update', id, '--prompt', 'Fix the links.']);
    expect(withoutFile).toMatchObject({ code: 2, stderr: expect.stringContaining('FILE is missing') });
    const withFile = await run(['update', id, '-', '--deadline', '3h', '--json']);
    expect(JSON.parse(withFile.stdout)).toMatchObject({ batch: { items: 1 } });
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
  expect((await run([])).code).toBe(2);
});
