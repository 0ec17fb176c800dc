import { randomUUID } from 'node:crypto';
import { afterAll, expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { sharedEnvironment } from '../../harness/shared-environment';
import { SWIFT_FLAGS, starter } from './starter';
import type { Ended } from '../command';

const made: string[] = [];
// Before the environment is closed.
afterAll(async () => {
  const { schedule } = (await open()).client;
  for (const id of made) await schedule.getHandle(id).delete();
});

const { open } = sharedEnvironment();

/** The words `schedule …`, for a schedule and a job of its own. */
async function stage() {
  const environment = await open();
  const id = `cli-${randomUUID().slice(0, 8)}`;
  const { projectId, jobId } = environment.addJob();
  const csv = `project,job,prompt\n${projectId},${jobId},Rebase on main.\n`;
  const run = (words: readonly string[], stdin = csv): Promise<Ended> =>
    starter(environment, ['schedule', ...words], stdin);
  const create = async (...more: string[]) => {
    const created = await run(['create', id, '-', '--cron', '0 0 1 1 *', ...SWIFT_FLAGS, ...more]);
    if (created.code === 0) made.push(id);
    return created;
  };
  const described = () => environment.client.schedule.getHandle(id).describe();
  const posts = () => environment.posts({ projectId });
  return { id, run, create, described, posts };
}

it.concurrent(
  'a schedule is made once, says when it fires next, and when it is triggered its batch',
  async () => {
    const { id, run, create, posts } = await stage();
    const first = await create('--timezone', 'Europe/Berlin', '--json');
    expect(first.code).toBe(0);
    const next = expect.stringMatching(/^\d{4}-12-31T23:00:00Z$/);
    expect(JSON.parse(first.stdout)).toEqual({ scheduleId: id, items: 1, next });
    const exists = `The schedule "${id}" exists. Nothing was changed. Use update to change it`;
    expect(await create()).toMatchObject({ code: 2, stderr: expect.stringContaining(exists) });
    const { code, stdout, stderr } = await run(['trigger', id]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(`${id}-`) });
    expect(stderr).toContain(`npm run starter -- batch watch ${stdout.trim()}`);
    await eventually('its message is sent', () => posts().length === 1);
  },
);

it.concurrent('a schedule has every flag, and an update changes what is given', async () => {
  const { id, run, create, described } = await stage();
  const created = await create(
    ...['--calendar', '{"dayOfWeek":"Fri","hour":"3","comment":"weekly"}'],
    ...['--every', '6h', '--offset', '30m', '--timezone', 'Asia/Tokyo'],
    ...['--overlap', 'cancel-other', '--catchup-window', '1h', '--pause-on-failure', '--concurrency', '3'],
    ...['--tolerate', '5%'],
  );
  expect(created).toMatchObject({ code: 0, stdout: `${id}\n` });
  const items = [{ prompt: 'Rebase on main.' }];
  const policies = { overlap: 'CANCEL_OTHER', catchupWindow: 3_600_000, pauseOnFailure: true };
  expect(await described()).toMatchObject({
    spec: {
      calendars: [
        { month: [{ start: 'JANUARY' }] },
        { dayOfWeek: [{ start: 'FRIDAY' }], hour: [{ start: 3 }], comment: 'weekly' },
      ],
      intervals: [{ every: 21_600_000, offset: 1_800_000 }],
      timezone: 'Asia/Tokyo',
    },
    policies,
    action: { args: [{ concurrency: 3, tolerate: { percent: 5 }, items }] },
  });

  const words = ['update', id];
  const flags = ['--calendar', '{"hour":"3"}', '--no-pause-on-failure', '--tolerate', '100%'];
  const told = expect.stringMatching(/^updated\nnext {8}\d{4}-/);
  expect(await run([...words, ...flags])).toMatchObject({ code: 0, stderr: told });
  const updated = await described();
  expect(updated).toMatchObject({
    spec: { calendars: [{ hour: [{ start: 3 }], month: [{ end: 'DECEMBER' }] }], intervals: [] },
    policies: { ...policies, pauseOnFailure: false },
    action: { args: [{ concurrency: 3, tolerate: { percent: 100 }, items }] },
  });
  expect(updated.spec.timezone ?? '').not.toBe('Asia/Tokyo');
  expect(await run([...words, '--timezone', 'UTC'])).toMatchObject({ code: 2 });
  const withoutFile = { code: 2, stderr: expect.stringContaining('FILE is missing') };
  expect(await run([...words, '--prompt', 'Fix the links.'])).toMatchObject(withoutFile);
  const withFile = await run([...words, '-', '--deadline', '3h', '--json']);
  expect(JSON.parse(withFile.stdout)).toMatchObject({ scheduleId: id, items: 1 });
  expect((await described()).action).toMatchObject({ args: [{ items: [{ deadline: '3h' }] }] });
});

it.concurrent.each([
  ['a/b', '', /^error: ID: must not hold a slash/],
  ['id', 'p,j,x,r-1\n', /line 3: request_id: must not be given in a schedule: from the second firing on/],
  [
    'id',
    `p,j,${'x'.repeat(200_000)},\n`.repeat(6),
    /FILE: 1\.1 MiB as JSON, and a schedule holds 1 MiB at most; let cron run "batch run"/,
  ],
])('a schedule is not made with a bad id, a request id, or too much (%#)', async (id, lines, words) => {
  const { run } = await stage();
  const input = `project,job,prompt,request_id\np,j,x,\n${lines}`;
  const refused = { code: 2, stderr: expect.stringMatching(words) };
  expect(await run(['create', id, '-', '--every', '1h'], input)).toMatchObject(refused);
});
