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

/** Adds a job, and returns a function that sends a message to it with the CLI. */
async function prepareSend(job?: NewJob) {
  const { args, ...key } = newSendCommand(await open(), job);
  const send = (...more: string[]) => run(...args, '--prompt', 'Fix it. 日本語\n', ...more);
  return { ...key, send };
}

it.concurrent(
  'send prints the job on stdout and the progress on stderr, and a second send prints the same job',
  async () => {
    const { projectId, jobId, workflowId, posts, send } = await prepareSend();
    const { code, stdout, stderr } = await send();
    expect(code).toBe(0);
    const { prLink } = (await open()).sandbox.job({ projectId, jobId }).job;
    expect(stdout).toMatch(/^status +completed$[^]*^delivery +accepted \(confirmed by response\), 1 send$/m);
    expect(stdout).toContain(`prLink    ${String(prLink)}\n`);
    expect(stderr).toContain(
      `http://ui.example/namespaces/default/workflows/${encodeURIComponent(workflowId)}\n`,
    );
    expect(stderr).toMatch(/^\d\d:\d\d:\d\dZ .*deadline in/m);

    const again = await send('--json');
    expect(again.stderr).toContain('the follow-up with this request ID has already ended');
    const result = { id: jobId, status: 'completed', prLink, receipt: { requestId: 'order-1' } };
    expect(JSON.parse(again.stdout)).toMatchObject(result);
    expect(await run('watch', workflowId, '--json')).toMatchObject({ code: 0, stdout: again.stdout });
    expect(posts().map((post) => post.prompt?.text)).toEqual(['Fix it. 日本語\n']);
  },
);

it.concurrent(
  'status, poll-now, extend and cancel work for a running follow-up, and report if it has ended',
  async () => {
    const { workflowId, send } = await prepareSend(ENDLESS_TURN);
    const sent = await send('--no-wait', '--json');
    expect(JSON.parse(sent.stdout)).toMatchObject({ workflowId, requestId: 'order-1', attached: false });
    expect(sent.stderr).toContain(`npm run starter -- watch ${workflowId}`);
    const status = async () => (await run('status', workflowId)).stdout;
    const table = /^phase +watching$[^]*^delivery +accepted \(confirmed by response\), 1 send$/m;
    await eventually('the follow-up is in the phase watching', status, { until: (text) => table.test(text) });
    const json = async (...args: string[]) =>
      JSON.parse((await run(...args, '--json')).stdout) as FollowUpProgress;
    const running = { workflowId, state: 'running', progress: { phase: 'watching' } };
    expect(await json('status', workflowId)).toMatchObject(running);
    const polled = await json('poll-now', workflowId);
    expect(polled).toMatchObject({ phase: 'watching', lastResponse: 'active' });
    expect((await json('extend', workflowId, '3h')).deadlineAt > polled.deadlineAt).toBe(true);
    // The worker of this process has polled recently, so `setup` lists the worker.
    expect(await json('setup')).toMatchObject({
      registered: [],
      taskQueue: (await open()).taskQueue,
      serverVersion: expect.stringMatching(/^\d+\.\d+/),
      workers: [expect.stringContaining(`${process.pid}@`)],
    });

    const continues = expect.stringContaining('If the message arrived, the agent continues.');
    expect(await run('cancel', workflowId)).toMatchObject({ code: 0, stderr: continues });
    const end = { type: 'Cancelled', details: { receipt: { delivery: { verdict: 'accepted' } } } };
    expect(await json('cancel', workflowId)).toMatchObject({ ended: true, end });
    expect([(await run('status', workflowId)).code, (await run('watch', workflowId)).code]).toEqual([24, 24]);
    const ended = expect.stringContaining('has already ended: cancelled');
    expect(await run('poll-now', workflowId)).toMatchObject({ code: 1, stderr: ended });
  },
);

it.concurrent(
  'send and list report a rejected follow-up with its details, and retry sends a rejected message but no accepted one',
  async () => {
    const { projectId, jobId, posts, workflowId, send } = await prepareSend();
    const { sandbox } = await open();
    sandbox.setFault({ name: 'status', projectId, jobId, operation: 'message', parameters: { code: 403 } });
    const sent = await send('--json');
    const advice =
      /^FollowUpRejected: [^]*^ +what to do +fix the cause, then run `agent-follow-up retry` with the workflow ID to send the message\. /m;
    expect(sent).toMatchObject({ code: 20, stderr: expect.stringMatching(advice) });
    const details = { job: { id: jobId }, httpStatus: 403, receipt: { delivery: { verdict: 'rejected' } } };
    expect(JSON.parse(sent.stdout)).toMatchObject({ type: 'FollowUpRejected', details });

    const listArgs = ['list', '--phase', 'failed', '--outcome', 'rejected', '--project', projectId];
    const list = async () => (await run(...listArgs, '--json')).stdout;
    const found = await eventually('the follow-up is listed', list, { until: (text) => text !== '[]\n' });
    const ended = { phase: 'failed', outcome: 'FollowUpRejected', verdict: 'rejected', state: 'failed' };
    expect(JSON.parse(found)).toMatchObject([{ workflowId, ...ended }]);
    expect(found).not.toContain('receipt');
    const { stdout, stderr } = await run(...listArgs);
    expect(stdout).toMatch(
      new RegExp(`^STARTED .*\n.* failed +FollowUpRejected +rejected +- +completed .*${workflowId}\n$`),
    );
    expect(stderr).toContain('eventually consistent');

    sandbox.clearFaults({ projectId, jobId });
    const completed = { code: 0, stdout: expect.stringMatching(/^status +completed$/m) };
    expect(await run('retry', workflowId)).toMatchObject(completed);
    const again = { code: 1, stderr: expect.stringContaining("can't be retried. The message was accepted") };
    expect(await run('retry', workflowId)).toMatchObject(again);
    expect(posts()).toHaveLength(2);
  },
);

it.concurrent(
  'retry with a filter prints with --dry-run the follow-up that it would retry, and otherwise retries it and prints its new run',
  async () => {
    const { projectId, jobId, posts, workflowId, send } = await prepareSend();
    const { sandbox, followUps } = await open();
    sandbox.setFault({
      name: 'status',
      projectId,
      jobId,
      operation: 'get',
      times: 1,
      parameters: { code: 403 },
    });
    const { code, stderr } = await send();
    expect(code).toBe(20);
    const runId = /^run {9}(\S+)$/m.exec(stderr)?.[1];
    const filter = ['--outcome', 'FollowUpRejected', '--project', projectId, '--ended-after', '1h'];
    const list = async () => (await run('list', ...filter, '--can-retry', '--json')).stdout;
    const listed = await eventually('the follow-up is listed', list, { until: (text) => text !== '[]\n' });
    expect(JSON.parse(listed)).toMatchObject([{ workflowId, runId }]);
    const dryRun = await run('retry', ...filter, '--dry-run');
    expect(dryRun.stdout).toMatch(RegExp(`^found  .* FollowUpRejected  not-sent  ${workflowId}\n$`));
    expect(dryRun).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('1 follow-up can be retried. Nothing was sent.'),
    });
    expect(posts()).toEqual([]);
    const retried = await run('retry', ...filter, '--json');
    expect(retried).toMatchObject({
      code: 0,
      stderr: '1 follow-up retried, 0 skipped because they run again or were already retried, 0 failed.\n',
    });
    const [item, counts] = retried.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { runId?: string });
    expect(item).toMatchObject({
      workflowId,
      retriedRunId: runId,
      outcome: 'FollowUpRejected',
      verdict: 'not-sent',
      error: null,
    });
    expect(counts).toEqual({ found: 1, retried: 1, skipped: 0, failed: 0, dryRun: false });
    await followUps.getHandle(workflowId, item?.runId).result();
    // The first run keeps its outcome, and the ID alone means the latest run.
    expect(await run('status', workflowId, '--run-id', String(runId))).toMatchObject({ code: 20 });
    expect(await run('status', workflowId)).toMatchObject({ code: 0 });
    expect(posts()).toHaveLength(1);
  },
);

it.concurrent('status shows why the workflow task of a follow-up fails', async () => {
  const { client, taskQueue } = await open();
  const foreign = new Client({ connection: client.connection, dataConverter: ENCRYPTING });
  const workflowId = `follow-up:undecodable:${randomUUID()}`;
  const handle = await foreign.workflow.start('followUp', { workflowId, taskQueue, args: [{}] });
  const status = async () => (await run('status', workflowId)).stdout;
  const shown = await eventually('the status shows the failed workflow task', status, {
    until: (text) => text.includes('workflow task keeps failing'),
  });
  expect(shown).toMatch(/the workflow task keeps failing and is retried: .*encoding/);
  await handle.terminate();
});

it.concurrent.each([
  ...['status', 'watch', 'cancel', 'poll-now', 'schedule update --overlap skip'],
  ...['status', 'watch', 'results', 'pause', 'resume', 'cancel', 'retry'].map((verb) => `batch ${verb}`),
])('%s with an unknown ID exits with 2 and reports the ID', async (command) => {
  const stderr = expect.stringMatching(
    /no (follow-up "nothing".*follow-up:PROJECT|(schedule|batch) "nothing")/,
  );
  expect(await run(...command.split(' '), 'nothing')).toMatchObject({ code: 2, stderr });
});
