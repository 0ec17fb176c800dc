import { expect, it } from '@jest/globals';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { Program } from '../harness/program';
import { eventsOf } from '../harness/reset';
import { sharedEnvironment } from '../harness/shared-environment';
import { temporal } from '../harness/temporal';
import { ROOT } from '../harness/worker-process';
import { newSendCommand } from './commands/run-cli';

const { open } = sharedEnvironment();

it('the CLI prints only its JSON document if it is started with npm as in the docs', async () => {
  const env = { ...temporal().env, FOLLOW_UP_TASK_QUEUE: (await open()).taskQueue };
  const args = ['run', '-s', 'starter', '--', 'list', '--project', 'without-follow-ups', '--json'];
  const { stdout } = await new Program('npm', args, { cwd: ROOT, env }).waitForEnd();
  expect(JSON.parse(stdout)).toEqual([]);
});

it.concurrent.each([
  ['SIGINT', 130, null, /watching/],
  [
    'SIGTERM',
    143,
    'nobody',
    /no worker has responded on task queue nobody yet; start a worker; the follow-up continues as soon as a worker runs/,
  ],
] as const)(
  'after %s the CLI exits with %d, the follow-up continues, and stderr has the commands to watch and cancel it',
  async (signal, code, queue, output) => {
    const environment = await open();
    const { args, workflowId } = newSendCommand(environment, ENDLESS_TURN);
    const env = { FOLLOW_UP_TASK_QUEUE: queue ?? environment.taskQueue };
    const sending = Program.startCli([...args, '--prompt', 'x'], env);
    await sending.waitForOutput(output);
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

it.concurrent('the CLI exits without an error if the reader of its stdout closes the pipe', async () => {
  const cli = Program.startCli(['--help'], {});
  cli.closeStdout();
  expect(await cli.waitForEnd()).toMatchObject({ code: 0, stderr: expect.not.stringContaining('EPIPE') });
});
