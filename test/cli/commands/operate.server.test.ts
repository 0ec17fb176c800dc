import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../../src/core/names';
import type { FollowUpProgress } from '../../../src/core/result';
import { ENCRYPTING } from '../../harness/encryption';
import { eventually } from '../../harness/eventually';
import { ENDLESS } from '../../harness/following';
import { SWIFT } from '../../harness/batch-of-test';
import { sharedEnvironment } from '../../harness/shared-environment';
import { starter } from './starter';
import type { Ended } from '../command';

const { open } = sharedEnvironment();

/** A follow-up whose turn ends only when the test says so. */
async function watched() {
  const environment = await open();
  const following = await environment.follow(ENDLESS, { deadline: '10m' });
  await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
  const run = (...args: string[]): Promise<Ended> => starter(environment, args);
  return { environment, following, workflowId: following.handle.workflowId, run };
}

describe('a running follow-up', () => {
  it.concurrent('is shown by status, as a table and as JSON, is read now, and gets more time', async () => {
    const { workflowId, run } = await watched();
    const table = expect.stringMatching(/^phase +watching$[^]*^delivery +accepted by response, 1 send$/m);
    expect(await run('status', workflowId)).toMatchObject({ code: 0, stdout: table });
    const json = async (...words: string[]) =>
      JSON.parse((await run(...words, '--json')).stdout) as FollowUpProgress;
    const running = { workflowId, state: 'running', progress: { phase: 'watching' } };
    expect(await json('status', workflowId)).toMatchObject(running);
    const polled = await json('poll-now', workflowId);
    expect(polled).toMatchObject({ phase: 'watching', lastAnswer: 'active' });
    expect((await json('extend', workflowId, '3h')).deadlineAt > polled.deadlineAt).toBe(true);
    expect((await run('extend', workflowId, '4h')).stderr).toBe('');
  });

  it.concurrent('ends by cancel, which says that the agent goes on; its exit code is 24', async () => {
    const { workflowId, run } = await watched();
    const first = await run('cancel', workflowId);
    expect(first.code).toBe(0);
    expect(first.stderr).toContain('If the agent is working on the message, it continues.');
    const again = await run('cancel', workflowId, '--json');
    const end = { type: 'Cancelled', details: { followUp: { delivery: { verdict: 'accepted' } } } };
    expect(JSON.parse(again.stdout)).toMatchObject({ ended: true, end });
    expect([(await run('status', workflowId)).code, (await run('watch', workflowId)).code]).toEqual([24, 24]);
    const ended = expect.stringContaining('has already ended: cancelled');
    expect(await run('poll-now', workflowId)).toMatchObject({ code: 1, stderr: ended });
  });
});

it.concurrent('status shows why the workflow task of a follow-up fails', async () => {
  const { environment, run } = await watched();
  const foreign = new Client({ connection: environment.client.connection, dataConverter: ENCRYPTING });
  const workflowId = `follow-up:undecodable:${randomUUID()}`;
  const { taskQueue } = environment;
  const handle = await foreign.workflow.start('followUp', { workflowId, taskQueue, args: [{}] });
  const trouble = /its workflow task fails, and is tried again: .*encoding/;
  const isShown = async () => trouble.test((await run('status', workflowId)).stdout);
  await eventually('it is shown', isShown);
  const taskTrouble = expect.stringMatching(/its workflow task fails/);
  const json = await run('status', workflowId, '--json');
  expect(JSON.parse(json.stdout)).toMatchObject({ taskTrouble });
  await handle.terminate();
});

it.concurrent(
  'list finds follow-ups by phase, by the beginning of their outcome, and by project',
  async () => {
    const { environment, following, workflowId, run } = await watched();
    const words = ['list', '--phase', 'watching', '--project', following.key.projectId];
    const list = async () => (await run(...words, '--json')).stdout;
    const found = await eventually('it is listed', list, { until: (text) => text !== '[]\n' });
    const listed = { workflowId, phase: 'watching', outcome: null, state: 'running' };
    expect(JSON.parse(found)).toMatchObject([listed]);
    expect(found).not.toContain('receipt');
    const table = await run(...words);
    expect(table.stdout).toMatch(new RegExp(`^STARTED .*\n.* watching +- +active .*${workflowId}\n$`));
    expect(table.stderr).toContain('eventually consistent');
    const lost = { name: 'processed-then-close', operation: 'message' } as const;
    const unknown = await environment.follow({ status: 'active', ...ENDLESS }, SWIFT, lost);
    expect(await unknown.failure()).toMatchObject({ type: 'DeliveryUnknown' });
    const ended = ['list', '--outcome', 'unknown', '--project', unknown.key.projectId];
    const row = new RegExp(` failed +unknown DeliveryUnknown +active .*${unknown.handle.workflowId}`);
    await eventually('its end is listed', async () => row.test((await run(...ended)).stdout));
  },
);

it.concurrent('setup says what it found: server, attributes, and the worker on the queue', async () => {
  const { environment, run } = await watched();
  const { code, stdout } = await run('setup', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    searchAttributes: { registered: [], present: [...SEARCH_ATTRIBUTES] },
    taskQueue: environment.taskQueue,
    serverVersion: expect.stringMatching(/^\d+\.\d+/),
    workers: [expect.stringContaining(`${process.pid}@`)],
  });
});

it('a workflow id of nothing is an error of usage, for every command that takes one', async () => {
  const { run } = await watched();
  const stderr = expect.stringContaining('There is no follow-up "follow-up:p:j:nothing"');
  for (const word of ['status', 'watch', 'cancel', 'poll-now'])
    expect(await run(word, 'follow-up:p:j:nothing')).toMatchObject({ code: 2, stderr });
});
