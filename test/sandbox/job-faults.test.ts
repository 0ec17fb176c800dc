import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type FaultSetting, type JobKey, type NewJob, type Sandbox, startSandbox } from '../../sandbox';
import { read, send } from './requests';

const START = Date.parse('2026-01-01T00:00:00Z');

let sandbox: Sandbox;
let now = START;

beforeAll(async () => {
  sandbox = await startSandbox({ messagesPerHour: null, now: () => now });
});

afterAll(async () => {
  await sandbox.close();
});

function faulty(fault: Omit<FaultSetting, 'projectId' | 'jobId'>, job: NewJob = {}): JobKey {
  const { projectId, jobId } = sandbox.addJob({ turn: { durationMs: 1_000 }, ...job });
  sandbox.setFault({ ...fault, projectId, jobId });
  return { projectId, jobId };
}

/** What so many reads of a job in a row see. */
async function seen(job: JobKey, field: 'status' | 'prLink', reads: number): Promise<unknown[]> {
  const values: unknown[] = [];
  for (let i = 0; i < reads; i += 1) values.push((await read(sandbox, job.jobId)).job()[field]);
  return values;
}

describe('a replica that lags', () => {
  it('answers the state of before for as long as it is told, to the message as well', async () => {
    const job = faulty({ name: 'stale', parameters: { for: '500ms' } }, { status: 'failed' });
    expect((await send(sandbox, job.jobId, 'x')).job().status).toBe('failed');
    now += 499;
    expect(await seen(job, 'status', 1)).toEqual(['failed']);
    now += 1;
    expect(await seen(job, 'status', 1)).toEqual(['active']);
  });

  it('or for so many answers, of one operation', async () => {
    const job = faulty({ name: 'stale', times: 2, operation: 'get' });
    expect((await send(sandbox, job.jobId, 'x')).job().status).toBe('active');
    expect(await seen(job, 'status', 3)).toEqual(['completed', 'completed', 'active']);
  });

  it('has nothing stale to show before the first message', async () => {
    const job = faulty({ name: 'stale' });
    expect(await seen(job, 'status', 1)).toEqual(['completed']);
    expect(sandbox.faults(job)[0]?.struck).toBe(0);
  });
});

describe('a job that changes its mind', () => {
  it('flap-archived shows a completed job archived in every other answer', async () => {
    const job = faulty({ name: 'flap-archived' });
    expect(await seen(job, 'status', 4)).toEqual(['archived', 'completed', 'archived', 'completed']);
  });

  it('late-link shows no link until some time after the end of the turn', async () => {
    const job = faulty({ name: 'late-link', parameters: { for: '2s' } });
    await send(sandbox, job.jobId, 'x');
    now += 2_999;
    expect((await read(sandbox, job.jobId)).job()).toMatchObject({ status: 'completed', prLink: null });
    now += 1;
    expect((await read(sandbox, job.jobId)).job().prLink).not.toBeNull();
  });

  it('vanishing-link shows the link in the first answers only', async () => {
    const job = faulty({ name: 'vanishing-link', parameters: { shown: 2 } }, { prLink: 'https://l/1' });
    expect(await seen(job, 'prLink', 4)).toEqual(['https://l/1', 'https://l/1', null, null]);
  });

  it('changing-link shows another link in every answer, and the page stays the same', async () => {
    const job = faulty({ name: 'changing-link' }, { pullRequest: true });
    const links = (await seen(job, 'prLink', 3)) as string[];
    expect(new Set(links).size).toBe(3);
    const pages = await Promise.all(links.map(async (link) => await (await fetch(link)).text()));
    expect(new Set(pages).size).toBe(1);
  });

  it('unknown-status replaces the statuses it is told to, so often as it is told', async () => {
    const job = faulty({
      name: 'unknown-status',
      times: 2,
      parameters: { word: 'paused', 'instead-of': 'active' },
    });
    expect(await seen(job, 'status', 1)).toEqual(['completed']);
    await send(sandbox, job.jobId, 'x');
    expect(await seen(job, 'status', 2)).toEqual(['paused', 'active']);
  });

  it('invisible-turn is over before anybody can see it, and was a turn', async () => {
    const job = faulty({ name: 'invisible-turn' });
    expect((await send(sandbox, job.jobId, 'x')).job().status).toBe('completed');
    expect(sandbox.job(job).messages).toBe(1);
    expect((await read(sandbox, job.jobId)).job().prLink).not.toBeNull();
  });
});

describe('a job that is not what was asked for', () => {
  it('another-job has another id', async () => {
    const job = faulty({ name: 'another-job' });
    expect((await send(sandbox, job.jobId, 'x')).job().id).toBe(`${job.jobId}-other`);
    expect(sandbox.job(job).messages).toBe(1);
  });

  it('bare-job has an id and a status, and nothing else', async () => {
    const job = faulty({ name: 'bare-job' });
    expect((await read(sandbox, job.jobId)).job()).toEqual({ id: job.jobId, status: 'completed' });
  });

  it('extra-fields has fields that nobody knows', async () => {
    const job = faulty({ name: 'extra-fields' });
    expect((await read(sandbox, job.jobId)).job()).toHaveProperty('turns');
  });

  it('empty-link has an empty text for no link, and leaves a link alone', async () => {
    expect(await seen(faulty({ name: 'empty-link' }), 'prLink', 1)).toEqual(['']);
    expect(await seen(faulty({ name: 'empty-link' }, { prLink: 'https://l/1' }), 'prLink', 1)).toEqual([
      'https://l/1',
    ]);
  });
});

describe('conditions of every fault', () => {
  it('times: it ends after acting so often', async () => {
    const job = faulty({ name: 'http-503', times: 2 });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await read(sandbox, job.jobId)).status);
    expect(statuses).toEqual([503, 503, 200]);
    expect(sandbox.faults(job)).toMatchObject([{ name: 'http-503', struck: 2, left: 0 }]);
  });

  it('skip: the first requests pass', async () => {
    const job = faulty({ name: 'not-found', skip: 1, times: 1 });
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await read(sandbox, job.jobId)).status);
    expect(statuses).toEqual([200, 404, 200]);
  });

  it('operation: the other one passes', async () => {
    const job = faulty({ name: 'http-500', operation: 'message' });
    expect((await read(sandbox, job.jobId)).status).toBe(200);
    expect((await send(sandbox, job.jobId, 'x')).status).toBe(500);
  });

  it('chance: drawn from the seed, so that a run can be repeated', async () => {
    const runs = await Promise.all(
      [7, 7, 8].map(async (seed) => {
        const own = await startSandbox({ seed });
        own.setFault({ name: 'http-503', chance: 0.5 });
        const statuses = [];
        for (let i = 0; i < 20; i += 1) statuses.push((await read(own, 'job-1')).status);
        await own.close();
        return statuses.join();
      }),
    );
    expect(runs[0]).toBe(runs[1]);
    expect(runs[0]).not.toBe(runs[2]);
    expect(runs[0]).toContain('200');
    expect(runs[0]).toContain('503');
  });

  it('several faults act one after the other, in the order in which they were set', async () => {
    const job = faulty({ name: 'http-503', times: 1 });
    sandbox.setFault({ name: 'not-found', times: 1, ...job });
    sandbox.setFault({ name: 'unknown-status', ...job });
    expect((await read(sandbox, job.jobId)).status).toBe(503);
    expect((await read(sandbox, job.jobId)).status).toBe(404);
    expect((await read(sandbox, job.jobId)).job().status).toBe('hibernating');
  });

  it('aimed at all jobs, at a project or at one job, and switched off where it was aimed', async () => {
    const own = await startSandbox();
    try {
      own.addJob({ projectId: 'other', id: 'job' });
      own.setFault({ name: 'http-503', projectId: 'docs' });
      own.setFault({ name: 'not-found', projectId: 'docs', jobId: 'job-2' });
      expect((await read(own, 'job-1')).status).toBe(503);
      own.clearFaults({ projectId: 'docs', jobId: '*' });
      expect((await read(own, 'job-1')).status).toBe(200);
      expect((await read(own, 'job-2')).status).toBe(404);
      own.clearFaults({ projectId: 'docs', jobId: 'job-2' }, 'http-500');
      expect((await read(own, 'job-2')).status).toBe(404);
      own.clearFaults();
      expect((await read(own, 'job-2')).status).toBe(200);
    } finally {
      await own.close();
    }
  });
});

describe('a service of strange texts', () => {
  it('strange-job puts one text after the other into one field after the other', async () => {
    const job = faulty({ name: 'strange-job' });
    const answers: string[] = [];
    for (let i = 0; i < 63; i += 1) answers.push((await read(sandbox, job.jobId)).text);
    expect(new Set(answers).size).toBe(63);
    expect(answers[1]).toContain('"status":"a\\ud800b"');
  });

  it('strange-job keeps to the text and the field that it is told', async () => {
    const job = faulty({ name: 'strange-job', parameters: { field: 'prLink', text: 'number' } });
    expect(await seen(job, 'prLink', 2)).toEqual([42, 42]);
  });

  it('strange-error sends them in the words and headers of an error', async () => {
    const job = faulty({ name: 'strange-error', parameters: { text: 'controls', code: 302 } });
    const reply = await read(sandbox, job.jobId);
    expect(reply.status).toBe(302);
    expect(reply.error()).toContain('\u001b[2J');
    expect(reply.headers.location).toMatch(/^http:/);
  });
});
