import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { ENDLESS } from '../harness/following';
import { sharedEnvironment } from '../harness/shared-environment';
import { jobToSendTo } from './commands/starter';
import { temporal } from '../harness/temporal';
import { ROOT } from '../harness/worker-process';
import { Program } from '../harness/program';

const { open } = sharedEnvironment();

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
    const environment = await open();
    const { words, workflowId, posts, ...key } = jobToSendTo(environment, ENDLESS);
    const env = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue };
    const sending = Program.starter([...words, '--prompt', 'x'], env);
    await sending.says(/watching/);
    sending.signal(signal);
    const ended = await sending.ended();
    expect(ended).toMatchObject({ code, signal: null, stdout: '' });
    expect(ended.stderr).toContain(`npm run starter -- watch ${workflowId}`);
    expect(ended.stderr).toContain(`npm run starter -- cancel ${workflowId}`);
    environment.sandbox.changeJob(key, { status: 'completed' });
    expect((await Program.starter(['watch', workflowId], env).ended()).code).toBe(0);
    expect(posts()).toHaveLength(1);
  });

  it.concurrent('says when no worker is there, and that nothing is lost', async () => {
    const { words } = jobToSendTo(await open());
    const env = { FOLLOW_UP_TASK_QUEUE: `nobody-${randomUUID()}` };
    const sending = Program.starter([...words, '--prompt', 'x'], env);
    await sending.says(/no worker answers on task queue nobody-\S+ \(yet\); start one, nothing is lost/);
    sending.signal('SIGINT');
    expect((await sending.ended()).code).toBe(130);
  });

  it.concurrent('ends quietly when the reader of its stdout goes away', async () => {
    const starter = Program.starter(['--help'], {});
    starter.closeStdout();
    expect(await starter.ended()).toMatchObject({ code: 0, stderr: expect.not.stringContaining('EPIPE') });
  });
});
