import { expect, it } from '@jest/globals';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { Program } from '../harness/program';
import { eventsOf } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';
import { temporal } from '../harness/temporal';
import { ROOT } from '../harness/worker-process';
import { newSendCommand } from './commands/run-cli';

const { open } = sharedEnvironment();

it('the starter prints nothing but its document through npm, as the docs call it', async () => {
  const env = { ...temporal().env, FOLLOW_UP_TASK_QUEUE: (await open()).taskQueue };
  const words = ['run', '-s', 'starter', '--', 'list', '--project', 'nobody-has-this', '--json'];
  const { stdout } = await new Program('npm', words, { cwd: ROOT, env }).waitForEnd();
  expect(JSON.parse(stdout)).toEqual([]);
});

it.concurrent.each([
  ['SIGINT', 130, null, /watching/],
  [
    'SIGTERM',
    143,
    'nobody',
    /no worker has responded on task queue nobody yet; start a worker \(nothing is lost\)/,
  ],
] as const)(
  'at %s the starter ends with %d, leaves the follow-up running, and says how to go on',
  async (signal, code, queue, said) => {
    const environment = await open();
    const { words, workflowId } = newSendCommand(environment, ENDLESS_TURN);
    const env = { FOLLOW_UP_TASK_QUEUE: queue ?? environment.taskQueue };
    const sending = Program.startCli([...words, '--prompt', 'x'], env);
    await sending.waitForOutput(said);
    sending.signal(signal);
    const ended = await sending.waitForEnd();
    expect(ended).toMatchObject({ code, signal: null, stdout: '' });
    for (const verb of ['watch', 'cancel'])
      expect(ended.stderr).toContain(`npm run starter -- ${verb} ${workflowId}`);
    const events = await eventsOf(environment.client.workflow.getHandle(workflowId));
    for (const kind of ['CancelRequested', 'Terminated'] as const)
      expect(events.some((event) => event[`workflowExecution${kind}EventAttributes`])).toBe(false);
  },
);

it.concurrent('the starter ends quietly when the reader of its stdout goes away', async () => {
  const starter = Program.startCli(['--help'], {});
  starter.closeStdout();
  expect(await starter.waitForEnd()).toMatchObject({ code: 0, stderr: expect.not.stringContaining('EPIPE') });
});
