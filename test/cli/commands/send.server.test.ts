import { describe, expect, it } from '@jest/globals';
import type { FollowUpResult } from '../../../src/core/result';
import { sharedEnvironment } from '../../harness/shared-environment';
import { jobToSendTo, starter } from './starter';

const { open } = sharedEnvironment();

describe('send', () => {
  it.concurrent('prints the job with its link as the result, and the way there beside it', async () => {
    const environment = await open();
    const { words, workflowId, ...key } = jobToSendTo(environment);
    const { code, stdout, stderr } = await starter(environment, [...words, '--prompt', 'Fix it.']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^status +completed$[^]*^delivery +accepted by response, 1 send$/m);
    expect(stdout).toContain(`prLink    ${environment.sandbox.job(key).job.prLink ?? ''}\n`);
    expect(stdout).toContain(`workflow  ${workflowId}\n`);
    expect(stderr).toContain(
      `http://ui.example/namespaces/default/workflows/${encodeURIComponent(workflowId)}\n`,
    );
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ .*deadline in/m);
  });

  it.concurrent('with --json prints the result; the same request prints it again', async () => {
    const environment = await open();
    const { words, posts, jobId } = jobToSendTo(environment);
    const prompt = 'Fix it. 日本語\n';
    const args = [...words, '--prompt-file', '-', '--json'];
    const first = await starter(environment, args, prompt);
    const result = JSON.parse(first.stdout) as FollowUpResult;
    expect(result).toMatchObject({ id: jobId, status: 'completed', followUp: { requestId: 'order-1' } });
    const second = await starter(environment, args, prompt);
    expect(second.stdout).toBe(first.stdout);
    expect(second.stderr).toContain('the follow-up of this request id has ended');
    expect(posts().map((post) => post.prompt?.text)).toEqual([prompt]);
  });

  it.concurrent('with --no-wait prints the workflow id, which watch takes to the end', async () => {
    const environment = await open();
    const { words, workflowId } = jobToSendTo(environment);
    const sent = await starter(environment, [...words, '--prompt', 'x', '--no-wait', '--json']);
    expect(JSON.parse(sent.stdout)).toMatchObject({ workflowId, requestId: 'order-1', attached: false });
    expect(sent.stderr).toContain(`npm run starter -- watch ${workflowId}`);
    const watched = await starter(environment, ['watch', workflowId, '--json']);
    expect(watched.code).toBe(0);
    expect(JSON.parse(watched.stdout)).toMatchObject({ status: 'completed' });
  });
});

describe('the exit code of send', () => {
  it.concurrent('is 23 for a job that is not there, with type, message and details as JSON', async () => {
    const environment = await open();
    const { words, jobId } = jobToSendTo(environment);
    const args = words.map((word) => (word === jobId ? 'nowhere' : word));
    const { code, stdout, stderr } = await starter(environment, [...args, '--prompt', 'x', '--json']);
    const details = { job: null, httpStatus: 404, followUp: { delivery: { verdict: 'not-sent' } } };
    const message = expect.stringContaining('Nothing was sent');
    expect(JSON.parse(stdout)).toMatchObject({ type: 'JobNotFound', message, details });
    expect({ code, stderr }).toEqual({ code: 23, stderr: expect.stringContaining('JobNotFound: ') });
  });

  it.concurrent('is 0 for the retry of a rejected message; another retry is refused', async () => {
    const environment = await open();
    const { words, projectId, jobId, posts, workflowId } = jobToSendTo(environment);
    environment.sandbox.setFault({ name: 'unauthorized', projectId, jobId, operation: 'message' });
    expect((await starter(environment, [...words, '--prompt', 'x'])).code).toBe(20);
    environment.sandbox.clearFaults({ projectId, jobId });
    const completed = { code: 0, stdout: expect.stringMatching(/^status +completed$/m) };
    expect(await starter(environment, ['retry', workflowId])).toMatchObject(completed);
    const again = { code: 1, stderr: expect.stringContaining("can't be retried. Its message was accepted") };
    expect(await starter(environment, ['retry', workflowId])).toMatchObject(again);
    expect(posts()).toHaveLength(2);
  });
});
