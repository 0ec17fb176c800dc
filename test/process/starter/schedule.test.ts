import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { sharedEnvironment } from '../../harness/shared-environment';
import { StarterProcess } from './starter-process';

const open = sharedEnvironment();

it('a schedule is made from a file, shown and deleted; stdout has one document, stderr the rest', async () => {
  const { taskQueue, client } = await open();
  const id = `process-${randomUUID().slice(0, 8)}`;
  const folder = await mkdtemp(path.join(os.tmpdir(), 'agent-follow-up-schedule-'));
  const file = path.join(folder, 'jobs.jsonl');
  const run = (...words: string[]) =>
    StarterProcess.start(['schedule', ...words, '--json'], { FOLLOW_UP_TASK_QUEUE: taskQueue }).ended();
  try {
    await writeFile(file, '{"project": "docs", "job": "job-1"}\n{"project": "docs", "job": "job-2"}\n');
    const options = ['--prompt', 'Rebase on main.', '--cron', '0 3 * * *', '--timezone', 'Europe/Berlin'];
    const created = await run('create', id, file, ...options);
    expect(created).toMatchObject({ code: 0, stderr: expect.stringMatching(/^created\nnext +\S+Z\n$/) });
    expect(JSON.parse(created.stdout)).toMatchObject({ scheduleId: id, batch: { items: 2 } });

    await writeFile(file, '{"project": "docs", "job": "job-1", "request_id": "r-1"}\nnot JSON\n');
    const refused = await run('update', id, file, '--prompt', 'x');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /line 1: request_id: must not be given in a schedule.*\n.*line 2: is not JSON/,
    );
    expect(JSON.parse(refused.stdout)).toMatchObject({ type: 'InvalidRequest' });

    expect(JSON.parse((await run('describe', id)).stdout)).toMatchObject({
      batch: { items: 2 },
      info: { recentActions: [] },
    });
    expect(await run('delete', id)).toMatchObject({ code: 0, stderr: 'deleted\n' });
    expect((await run('describe', id)).code).toBe(2);
  } finally {
    await rm(folder, { recursive: true });
    await client.schedule
      .getHandle(id)
      .delete()
      .catch(() => undefined);
  }
});
