import { describe, expect, it } from '@jest/globals';
import type { FollowUpResult } from '../../../src/core/result';
import { sharedEnvironment } from '../../harness/shared-environment';
import { jobToSendTo, starter } from './starter';

const open = sharedEnvironment();

describe('send', () => {
  it.concurrent('prints the job with its link as the result, and the way there beside it', async () => {
    const environment = await open();
    const { words, workflowId, ...key } = jobToSendTo(environment);
    const { code, stdout, stderr } = await starter(environment, [...words, '--prompt', 'Fix it.']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^status +completed$/m);
    expect(stdout).toContain(`prLink    ${environment.sandbox.job(key).job.prLink ?? ''}\n`);
    expect(stdout).toMatch(/^delivery +accepted by response, 1 send$/m);
    expect(stdout).toContain(`workflow  ${workflowId}\n`);
    expect(stderr).toContain(
      `http://ui.example/namespaces/default/workflows/${encodeURIComponent(workflowId)}\n`,
    );
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ .*deadline in/m);
  });

  it.concurrent(
    'with --json prints exactly the result; the same request again the same, and sends nothing',
    async () => {
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
    },
  );

  it.concurrent('of the same request id with another prompt exits with 2', async () => {
    const environment = await open();
    const { words, posts } = jobToSendTo(environment);
    await starter(environment, [...words, '--prompt', 'One.']);
    const { code, stdout, stderr } = await starter(environment, [...words, '--prompt', 'Another.']);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/exists with another prompt: --request-id "order-1" is taken\. Nothing was sent/);
    expect(posts()).toHaveLength(1);
  });

  it.concurrent('of the same request id with other options says that they are not taken', async () => {
    const environment = await open();
    const { words } = jobToSendTo(environment);
    const args = [...words, '--prompt', 'One.', '--no-wait'];
    await starter(environment, args);
    const { code, stderr } = await starter(environment, [...args, '--when-active', 'wait']);
    expect(code).toBe(0);
    expect(stderr).toContain('nothing is sent again');
    expect(stderr).toContain('the follow-up keeps its own options: whenActive is send there, not wait');
  });

  it.concurrent('makes a request id and says how to attach by it', async () => {
    const environment = await open();
    const { words, projectId, jobId } = jobToSendTo(environment);
    const unnamed = words.filter((word) => word !== '--request-id' && word !== 'order-1');
    const { stdout, stderr } = await starter(environment, [...unnamed, '--prompt', 'x', '--no-wait']);
    const [, id = ''] = /^request id {2}(\S+) .*--request-id (\S+)/.exec(stderr) ?? [];
    expect(stdout).toBe(`follow-up:${projectId}:${jobId}:${id}\n`);
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
  it.concurrent('is 11 for a job that fails, which is a result', async () => {
    const environment = await open();
    const { words } = jobToSendTo(environment, { durationMs: 300, outcome: 'failed' });
    const { code, stdout } = await starter(environment, [...words, '--prompt', 'x', '--json']);
    expect(code).toBe(11);
    expect(JSON.parse(stdout)).toMatchObject({
      status: 'failed',
      followUp: { delivery: { verdict: 'accepted' } },
    });
  });

  it.concurrent('is 23 for a job that is not there, with type, message and details as JSON', async () => {
    const environment = await open();
    const { words, jobId } = jobToSendTo(environment);
    const args = words.map((word) => (word === jobId ? 'nowhere' : word));
    const { code, stdout, stderr } = await starter(environment, [...args, '--prompt', 'x', '--json']);
    expect(code).toBe(23);
    const document = JSON.parse(stdout) as { message: string };
    expect(document).toMatchObject({
      type: 'JobNotFound',
      details: { job: null, httpStatus: 404, followUp: { delivery: { verdict: 'not-sent' } } },
    });
    expect(document.message).toContain('Nothing was sent');
    expect(stderr).toContain('JobNotFound: ');
  });

  it.concurrent('is 20 where the service rejects the message', async () => {
    const environment = await open();
    const { words, projectId, jobId } = jobToSendTo(environment);
    const parameters = { code: 422 };
    environment.sandbox.setFault({ name: 'status', projectId, jobId, operation: 'message', parameters });
    const { code, stderr } = await starter(environment, [...words, '--prompt', 'x']);
    expect(code).toBe(20);
    expect(stderr).toMatch(/FollowUpRejected: .*\n {2}http status +422\n/);
  });

  it.concurrent('is 21 where nobody knows whether the message arrived', async () => {
    const environment = await open();
    const { words, projectId, jobId } = jobToSendTo(environment);
    environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'message' });
    const { code, stderr } = await starter(environment, [...words, '--prompt', 'x']);
    expect(code).toBe(21);
    expect(stderr).toContain('DeliveryUnknown: ');
  });

  it.concurrent('is 22 where the deadline passes', async () => {
    const environment = await open();
    const { words } = jobToSendTo(environment, null);
    const { code, stderr } = await starter(environment, [...words, '--deadline', '2s', '--prompt', 'x']);
    expect(code).toBe(22);
    expect(stderr).toContain('DeadlineExceeded: ');
  });
});

describe('the progress', () => {
  it.concurrent('says at once that the service cannot be reached, and that nothing was sent', async () => {
    const environment = await open();
    const { words, projectId, jobId } = jobToSendTo(environment);
    environment.sandbox.setFault({ name: 'reset', projectId, jobId, operation: 'get' });
    const { code, stderr } = await starter(environment, [...words, '--deadline', '6s', '--prompt', 'x']);
    expect(code).toBe(22);
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ (baseline|sending) · .*ECONNRESET.*; nothing sent yet/m);
  });
});
