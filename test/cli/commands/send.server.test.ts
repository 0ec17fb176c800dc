import { expect, it } from '@jest/globals';
import type { FollowUpResult } from '../../../src/core/result';
import { sharedEnvironment } from '../../harness/shared-environment';
import { jobToSendTo, starter } from './starter';

const { open } = sharedEnvironment();

/** A job, and the commands that send to it. */
async function stage() {
  const environment = await open();
  const { words, ...job } = jobToSendTo(environment);
  const run = (...args: string[]) => starter(environment, args);
  const send = (...more: string[]) => run(...words, '--prompt', 'Fix it. 日本語\n', ...more);
  return { environment, ...job, run, send };
}

it.concurrent('send prints the job with its link as the result, and the way there beside it', async () => {
  const { environment, projectId, jobId, workflowId, send } = await stage();
  const { code, stdout, stderr } = await send();
  expect(code).toBe(0);
  expect(stdout).toMatch(/^status +completed$[^]*^delivery +accepted by response, 1 send$/m);
  expect(stdout).toContain(`prLink    ${environment.sandbox.job({ projectId, jobId }).job.prLink ?? ''}\n`);
  expect(stdout).toContain(`workflow  ${workflowId}\n`);
  const page = `http://ui.example/namespaces/default/workflows/${encodeURIComponent(workflowId)}\n`;
  expect(stderr).toContain(page);
  expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ .*deadline in/m);
});

it.concurrent(
  'send --no-wait prints the workflow id; watch and the same request print the result',
  async () => {
    const { jobId, workflowId, posts, run, send } = await stage();
    const sent = await send('--no-wait', '--json');
    expect(JSON.parse(sent.stdout)).toMatchObject({ workflowId, requestId: 'order-1', attached: false });
    expect(sent.stderr).toContain(`npm run starter -- watch ${workflowId}`);
    const watched = await run('watch', workflowId, '--json');
    const result = JSON.parse(watched.stdout) as FollowUpResult;
    expect(result).toMatchObject({ id: jobId, status: 'completed', followUp: { requestId: 'order-1' } });
    const same = expect.stringContaining('the follow-up of this request id has ended');
    expect(await send('--json')).toEqual({ code: 0, stdout: watched.stdout, stderr: same });
    expect(posts().map((post) => post.prompt?.text)).toEqual(['Fix it. 日本語\n']);
  },
);

it.concurrent(
  'send of a job that is not there ends with 23, and type, message and details as JSON',
  async () => {
    const { run } = await stage();
    const words = ['send', '--project', 'p', '--job', 'nowhere', '--prompt', 'x', '--json'];
    const { code, stdout, stderr } = await run(...words);
    const details = { job: null, httpStatus: 404, followUp: { delivery: { verdict: 'not-sent' } } };
    const message = expect.stringContaining('Nothing was sent');
    expect(JSON.parse(stdout)).toMatchObject({ type: 'JobNotFound', message, details });
    expect({ code, stderr }).toEqual({ code: 23, stderr: expect.stringContaining('JobNotFound: ') });
  },
);

it.concurrent('retry sends a rejected message once more, and no accepted one', async () => {
  const { environment, projectId, jobId, posts, workflowId, run, send } = await stage();
  environment.sandbox.setFault({ name: 'unauthorized', projectId, jobId, operation: 'message' });
  expect((await send()).code).toBe(20);
  environment.sandbox.clearFaults({ projectId, jobId });
  const completed = { code: 0, stdout: expect.stringMatching(/^status +completed$/m) };
  expect(await run('retry', workflowId)).toMatchObject(completed);
  const again = { code: 1, stderr: expect.stringContaining("can't be retried. Its message was accepted") };
  expect(await run('retry', workflowId)).toMatchObject(again);
  expect(posts()).toHaveLength(2);
});
