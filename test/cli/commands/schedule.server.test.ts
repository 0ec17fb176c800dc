import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { sharedEnvironment } from '../../harness/shared-environment';
import { SWIFT_FLAGS, starter } from './starter';
import type { Ended } from '../command';

const { open } = sharedEnvironment();

/** The words `schedule …`, for a schedule and a job of its own. */
async function stage() {
  const environment = await open();
  const id = `cli-${randomUUID().slice(0, 8)}`;
  const { projectId, jobId } = environment.addJob();
  const csv = `project,job,prompt\n${projectId},${jobId},Rebase on main.\n`;
  const run = (words: readonly string[], stdin = csv): Promise<Ended> =>
    starter(environment, ['schedule', ...words], stdin);
  const create = (...more: string[]) =>
    run(['create', id, '-', '--cron', '0 0 1 1 *', ...SWIFT_FLAGS, ...more]);
  const described = () => environment.client.schedule.getHandle(id).describe();
  const posts = () => environment.posts({ projectId });
  return { id, csv, run, create, described, posts };
}

describe('a schedule', () => {
  it.concurrent('is made once, says when it fires next, and when it is triggered its batch', async () => {
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
  });

  it.concurrent('sends every flag to the server', async () => {
    const { id, create, described } = await stage();
    const created = await create(
      ...['--calendar', '{"dayOfWeek":"Fri","hour":"3","comment":"weekly"}'],
      ...['--every', '6h', '--offset', '30m', '--timezone', 'Asia/Tokyo'],
      ...['--overlap', 'cancel-other', '--catchup-window', '1h', '--pause-on-failure', '--concurrency', '3'],
      ...['--tolerate', '5%'],
    );
    expect(created).toMatchObject({ code: 0, stdout: `${id}\n` });
    expect(await described()).toMatchObject({
      spec: {
        calendars: [
          { month: [{ start: 'JANUARY' }] },
          { dayOfWeek: [{ start: 'FRIDAY' }], hour: [{ start: 3 }], comment: 'weekly' },
        ],
        intervals: [{ every: 21_600_000, offset: 1_800_000 }],
        timezone: 'Asia/Tokyo',
      },
      policies: { overlap: 'CANCEL_OTHER', catchupWindow: 3_600_000, pauseOnFailure: true },
      action: {
        args: [{ concurrency: 3, tolerate: { percent: 5 }, items: [{ prompt: 'Rebase on main.' }] }],
      },
    });
  });

  it.concurrent.each([
    ['a/b', undefined, /^error: ID: must not hold a slash/],
    [
      undefined,
      'project,job,prompt,request_id\np,j,x,\np,j,x,r-1\n',
      /line 3: request_id: must not be given in a schedule: from the second firing on/,
    ],
    [
      undefined,
      `project,job,prompt\n${`p,j,${'x'.repeat(200_000)}\n`.repeat(6)}`,
      /FILE: 1\.1 MiB as JSON, and a schedule holds 1 MiB at most; let cron run the starter's command "batch run"/,
    ],
  ])('is not made with a bad id, a request id, or too much (%#)', async (badId, badInput, words) => {
    const { id, run, csv } = await stage();
    const create = ['create', badId ?? id, '-', '--every', '1h', '--prompt', 'x'];
    expect(await run(create, badInput ?? csv)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(words),
    });
  });

  it.concurrent('is updated by what is given; the flags of items need a file', async () => {
    const { id, run, create, described } = await stage();
    await create('--pause-on-failure', '--tolerate', '1', '--timezone', 'Asia/Tokyo');
    const updated = await run([
      ...['update', id, '--calendar', '{"hour":"3"}', '--no-pause-on-failure', '--tolerate', '100%'],
    ]);
    const next = expect.stringMatching(/^updated\nnext {8}[-\d]+T03:00:00Z\n$/);
    expect(updated).toMatchObject({ code: 0, stderr: next });
    const { spec, policies, action } = await described();
    expect(spec.calendars).toMatchObject([{ hour: [{ start: 3 }], month: [{ end: 'DECEMBER' }] }]);
    expect(spec.timezone ?? '').not.toBe('Asia/Tokyo');
    expect(policies.pauseOnFailure).toBe(false);
    const args = [{ tolerate: { percent: 100 }, items: [{ prompt: 'Rebase on main.' }] }];
    expect(action).toMatchObject({ args });
    expect(await run(['update', id, '--timezone', 'UTC'])).toMatchObject({ code: 2 });
    const withoutFile = await run(['update', id, '--prompt', 'Fix the links.']);
    expect(withoutFile).toMatchObject({ code: 2, stderr: expect.stringContaining('FILE is missing') });
    const withFile = await run(['update', id, '-', '--deadline', '3h', '--json']);
    expect(JSON.parse(withFile.stdout)).toMatchObject({ scheduleId: id, items: 1 });
    expect((await described()).action).toMatchObject({ args: [{ items: [{ deadline: '3h' }] }] });
  });

  it.concurrent.each([['trigger'], ['update', '--overlap', 'skip']])(
    'of another id is an error of usage: %s',
    async (verb, ...flags) => {
      const { run } = await stage();
      const { code, stderr } = await run([verb, 'nothing', ...flags]);
      expect(code).toBe(2);
      expect(stderr).toContain('There is no schedule "nothing" in the namespace default');
    },
  );
});
