import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type { NewJob } from '../../sandbox';
import { ENDLESS } from '../harness/following';
import { sharedEnvironment } from '../harness/shared-environment';
import { jobToSendTo } from './commands/starter';
import { temporal } from '../harness/temporal';
import { ROOT } from '../harness/worker-process';
import { Program } from '../harness/program';

const { open } = sharedEnvironment();

/** A `send` to a new job, as a process. */
async function send(newJob: NewJob, env: NodeJS.ProcessEnv = {}) {
  const environment = await open();
  const job = jobToSendTo(environment, newJob);
  const start = (...args: string[]): Program =>
    Program.starter(args, { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env });
  return { environment, job, start, process: start(...job.words, '--prompt', 'x') };
}

it('prints nothing but its document through npm, as the docs call it', async () => {
  const env = { ...temporal().env, FOLLOW_UP_TASK_QUEUE: (await open()).taskQueue };
  const words = ['run', '-s', 'starter', '--', 'list', '--project', 'nobody-has-this', '--json'];
  const { stdout } = await new Program('npm', words, { cwd: ROOT, env }).ended();
  expect(JSON.parse(stdout)).toEqual([]);
});

describe('the starter as a process', () => {
  it.concurrent.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('leaves the follow-up running at %s and says how to go on', async (signal, code) => {
    const sent = await send(ENDLESS);
    await sent.process.says(/watching/);
    sent.process.signal(signal);
    const ended = await sent.process.ended();
    const { workflowId, posts, ...key } = sent.job;
    expect(ended).toMatchObject({ code, signal: null, stdout: '' });
    expect(ended.stderr).toContain(`npm run starter -- watch ${workflowId}`);
    expect(ended.stderr).toContain(`npm run starter -- cancel ${workflowId}`);
    sent.environment.sandbox.changeJob(key, { status: 'completed' });
    expect((await sent.start('watch', workflowId).ended()).code).toBe(0);
    expect(posts()).toHaveLength(1);
  });

  it.concurrent('says when no worker is there, and that nothing is lost', async () => {
    const taskQueue = `nobody-${randomUUID()}`;
    const sent = await send({}, { FOLLOW_UP_TASK_QUEUE: taskQueue });
    await sent.process.says(/no worker answers on task queue nobody-\S+ \(yet\); start one, nothing is lost/);
    sent.process.signal('SIGINT');
    expect((await sent.process.ended()).code).toBe(130);
  });

  it.concurrent('ends quietly when the reader of its stdout goes away', async () => {
    const starter = Program.starter(['--help'], {});
    starter.closeStdout();
    expect(await starter.ended()).toMatchObject({ code: 0, stderr: expect.not.stringContaining('EPIPE') });
  });
});
