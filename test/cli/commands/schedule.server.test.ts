import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { eventually } from '../../../tools/lib/eventually';
import { sharedEnvironment } from '../../harness/shared-environment';
import { temporalCommand } from '../../harness/temporal-command';
import { FASTEST_FLAGS, runCli } from './run-cli';

const { open } = sharedEnvironment();

interface Described {
  readonly info: {
    readonly recentActions: readonly { readonly startWorkflowResult: { readonly workflowId: string } }[];
  };
}

/** Returns functions that run `schedule` commands for a new schedule with a new job. */
async function prepareSchedule() {
  const environment = await open();
  const id = `cli-${randomUUID().slice(0, 8)}`;
  const { projectId, jobId } = environment.addJob();
  const csv = `project,job,prompt\n${projectId},${jobId},Rebase on main.\n`;
  const run = (verb: string, ...args: string[]) => runCli(environment, ['schedule', verb, id, ...args], csv);
  const described = () => environment.client.schedule.getHandle(id).describe();
  const posts = () => environment.posts({ projectId });
  return { id, run, described, posts };
}

it.concurrent(
  'schedule create creates a schedule only once, and the Temporal CLI can trigger it and describe its batches',
  async () => {
    const { id, run, posts } = await prepareSchedule();
    const args = ['-', '--cron', '0 0 1 1 *', '--timezone', 'Europe/Berlin', ...FASTEST_FLAGS];
    const first = await run('create', ...args, '--json');
    expect(first.code).toBe(0);
    const next = expect.stringMatching(/^\d{4}-12-31T23:00:00Z$/);
    expect(JSON.parse(first.stdout)).toEqual({ scheduleId: id, items: 1, next });
    const exists = `The schedule "${id}" already exists. Nothing was changed. Use update to change it`;
    expect(await run('create', ...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(exists) });
    await temporalCommand('schedule', 'trigger', '--schedule-id', id);
    await eventually('the message is sent', () => posts().length === 1);
    const description = await temporalCommand(
      'schedule',
      'describe',
      '--schedule-id',
      id,
      '--output',
      'json',
    );
    const { info } = JSON.parse(description) as Described;
    expect(info.recentActions[0]?.startWorkflowResult.workflowId).toMatch(`follow-up-batch:${id}-`);
  },
);

it.concurrent('schedule create sets every flag, and schedule update only the given flags', async () => {
  const { id, run, described } = await prepareSchedule();
  const calendar = '{"dayOfWeek":"Fri","hour":"3","comment":"weekly"}';
  const created = await run(
    'create',
    ...['-', '--cron', '0 0 1 1 *', '--calendar', calendar],
    ...['--every', '6h', '--offset', '30m', '--timezone', 'Asia/Tokyo'],
    ...['--overlap', 'cancel-other', '--catchup-window', '1h', '--pause-on-failure', '--concurrency', '3'],
    ...['--max-failures', '5%', '--paused'],
  );
  expect(created).toMatchObject({ code: 0, stdout: `${id}\n` });
  const items = [{ prompt: 'Rebase on main.' }];
  const policies = { overlap: 'CANCEL_OTHER', catchupWindow: 3_600_000, pauseOnFailure: true };
  const weekly = { dayOfWeek: [{ start: 'FRIDAY' }], hour: [{ start: 3 }], comment: 'weekly' };
  expect(await described()).toMatchObject({
    spec: {
      calendars: [{ month: [{ start: 'JANUARY' }] }, weekly],
      intervals: [{ every: 21_600_000, offset: 1_800_000 }],
      timezone: 'Asia/Tokyo',
    },
    ...{ policies, state: { paused: true } },
    action: { args: [{ concurrency: 3, maxFailures: { percent: 5 }, items }] },
  });

  const flags = ['--calendar', '{"hour":"3"}', '--no-pause-on-failure', '--max-failures', '7'];
  const told = expect.stringMatching(/^updated\nnext {8}none known/);
  expect(await run('update', ...flags)).toMatchObject({ code: 0, stderr: told });
  const updated = await described();
  expect(updated).toMatchObject({
    spec: { calendars: [{ hour: [{ start: 3 }], month: [{ end: 'DECEMBER' }] }], intervals: [] },
    policies: { ...policies, pauseOnFailure: false },
    action: { args: [{ concurrency: 3, maxFailures: { items: 7 }, items }] },
  });
  expect(updated.spec.timezone ?? '').not.toBe('Asia/Tokyo');
  const withFile = await run('update', '-', '--deadline', '3h', '--json');
  expect(JSON.parse(withFile.stdout)).toMatchObject({ scheduleId: id, items: 1 });
  expect((await described()).action).toMatchObject({ args: [{ items: [{ deadline: '3h' }] }] });
});
