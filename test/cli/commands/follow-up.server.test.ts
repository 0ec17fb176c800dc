import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import type { NewJob } from '../../../sandbox';
import type { FollowUpProgress } from '../../../src/contract/result';
import { ENCRYPTING } from '../../harness/encryption';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';
import { newSendCommand, runCli } from './run-cli';

const { open } = sharedEnvironment();

const run = async (...args: string[]) => runCli(await open(), args);

/** A job, and what sends to it. */
async function stage(job?: NewJob) {
  const { words, ...key } = newSendCommand(await open(), job);
  const send = (...more: string[]) => run(...words, '--prompt', 'Fix it. 日本語\n', ...more);
  return { ...key, send };
}

it.concurrent(
  'send prints the job with its link, and the way there beside it; sent again, the same',
  async () => {
    const { projectId, jobId, workflowId, posts, send } = await stage();
    const { code, stdout, stderr } = await send();
    expect(code).toBe(0);
    const { prLink } = (await open()).sandbox.job({ projectId, jobId }).job;
    expect(stdout).toMatch(/^status +completed$[^]*^delivery +accepted by response, 1 send$/m);
    expect(stdout).toContain(`prLink    ${String(prLink)}\n`);
    expect(stderr).toContain(
      `http://ui.example/namespaces/default/workflows/${encodeURIComponent(workflowId)}\n`,
    );
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ .*deadline in/m);

    const again = await send('--json');
    expect(again.stderr).toContain('the follow-up of this request id has ended');
    const result = { id: jobId, status: 'completed', prLink, receipt: { requestId: 'order-1' } };
    expect(JSON.parse(again.stdout)).toMatchObject(result);
    expect(await run('watch', workflowId, '--json')).toMatchObject({ code: 0, stdout: again.stdout });
    expect(posts().map((post) => post.prompt?.text)).toEqual(['Fix it. 日本語\n']);
  },
);

it.concurrent(
  'a running follow-up is shown by status, read now, given more time, and cancelled',
  async () => {
    const { workflowId, send } = await stage(ENDLESS_TURN);
    const sent = await send('--no-wait', '--json');
    expect(JSON.parse(sent.stdout)).toMatchObject({ workflowId, requestId: 'order-1', attached: false });
    expect(sent.stderr).toContain(`npm run starter -- watch ${workflowId}`);
    const status = async () => (await run('status', workflowId)).stdout;
    const table = /^phase +watching$[^]*^delivery +accepted by response, 1 send$/m;
    await eventually('it is watched', status, { until: (text) => table.test(text) });
    const json = async (...words: string[]) =>
      JSON.parse((await run(...words, '--json')).stdout) as FollowUpProgress;
    const running = { workflowId, state: 'running', progress: { phase: 'watching' } };
    expect(await json('status', workflowId)).toMatchObject(running);
    const polled = await json('poll-now', workflowId);
    expect(polled).toMatchObject({ phase: 'watching', lastResponse: 'active' });
    expect((await json('extend', workflowId, '3h')).deadlineAt > polled.deadlineAt).toBe(true);
    // What has read is there.
    expect(await json('setup')).toMatchObject({
      registered: [],
      taskQueue: (await open()).taskQueue,
      serverVersion: expect.stringMatching(/^\d+\.\d+/),
      workers: [expect.stringContaining(`${process.pid}@`)],
    });

    const goesOn = expect.stringContaining('If the agent is working on the message, it continues.');
    expect(await run('cancel', workflowId)).toMatchObject({ code: 0, stderr: goesOn });
    const end = { type: 'Cancelled', details: { receipt: { delivery: { verdict: 'accepted' } } } };
    expect(await json('cancel', workflowId)).toMatchObject({ ended: true, end });
    expect([(await run('status', workflowId)).code, (await run('watch', workflowId)).code]).toEqual([24, 24]);
    const ended = expect.stringContaining('has already ended: cancelled');
    expect(await run('poll-now', workflowId)).toMatchObject({ code: 1, stderr: ended });
  },
);

it.concurrent(
  'a rejected one is told with its details, listed, and sent once more by retry, which sends no accepted one',
  async () => {
    const { projectId, jobId, posts, workflowId, send } = await stage();
    const { sandbox } = await open();
    sandbox.setFault({ name: 'status', projectId, jobId, operation: 'message', parameters: { code: 403 } });
    const sent = await send('--json');
    const advice =
      /^FollowUpRejected: [^]*^ +what to do +fix the cause, then run `agent-follow-up retry` to send the message\. /m;
    expect(sent).toMatchObject({ code: 20, stderr: expect.stringMatching(advice) });
    const details = { job: { id: jobId }, httpStatus: 403, receipt: { delivery: { verdict: 'rejected' } } };
    expect(JSON.parse(sent.stdout)).toMatchObject({ type: 'FollowUpRejected', details });

    const words = ['list', '--phase', 'failed', '--outcome', 'rejected', '--project', projectId];
    const list = async () => (await run(...words, '--json')).stdout;
    const found = await eventually('it is listed', list, { until: (text) => text !== '[]\n' });
    const ended = { phase: 'failed', outcome: 'FollowUpRejected', verdict: 'rejected', state: 'failed' };
    expect(JSON.parse(found)).toMatchObject([{ workflowId, ...ended }]);
    expect(found).not.toContain('receipt');
    const { stdout, stderr } = await run(...words);
    expect(stdout).toMatch(
      new RegExp(`^STARTED .*\n.* failed +FollowUpRejected +rejected +completed .*${workflowId}\n$`),
    );
    expect(stderr).toContain('eventually consistent');

    sandbox.clearFaults({ projectId, jobId });
    const completed = { code: 0, stdout: expect.stringMatching(/^status +completed$/m) };
    expect(await run('retry', workflowId)).toMatchObject(completed);
    const again = { code: 1, stderr: expect.stringContaining("can't be retried. Its message was accepted") };
    expect(await run('retry', workflowId)).toMatchObject(again);
    expect(posts()).toHaveLength(2);
  },
);

it.concurrent('status shows why the workflow task of a follow-up fails', async () => {
  const { client, taskQueue } = await open();
  const foreign = new Client({ connection: client.connection, dataConverter: ENCRYPTING });
  const workflowId = `follow-up:undecodable:${randomUUID()}`;
  const handle = await foreign.workflow.start('followUp', { workflowId, taskQueue, args: [{}] });
  const status = async () => (await run('status', workflowId)).stdout;
  const shown = await eventually('it fails', status, { until: (text) => text.includes('task fails') });
  expect(shown).toMatch(/its workflow task fails, and is tried again: .*encoding/);
  await handle.terminate();
});

it.concurrent.each([
  ...['status', 'watch', 'cancel', 'poll-now', 'schedule update --overlap skip'],
  ...['status', 'watch', 'results', 'pause', 'resume', 'cancel', 'retry'].map((verb) => `batch ${verb}`),
])('%s of nothing is an error of usage', async (words) => {
  const stderr = expect.stringMatching(
    /no (follow-up "nothing".*follow-up:PROJECT|(schedule|batch) "nothing")/,
  );
  expect(await run(...words.split(' '), 'nothing')).toMatchObject({ code: 2, stderr });
});
