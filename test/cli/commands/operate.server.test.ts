import { randomUUID } from 'node:crypto';
import { expect, it } from '@jest/globals';
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

const run = async (...args: string[]): Promise<Ended> => starter(await open(), args);

/** A follow-up whose turn ends only when the test says so. */
async function watched() {
  const following = await (await open()).follow(ENDLESS, { deadline: '10m' });
  await following.progressWhen(({ phase, polls }) => phase === 'watching' && polls > 0);
  return following.handle.workflowId;
}

it.concurrent(
  'a running follow-up is shown by status, read now, given more time, and cancelled',
  async () => {
    const workflowId = await watched();
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

    const goesOn = expect.stringContaining('If the agent is working on the message, it continues.');
    expect(await run('cancel', workflowId)).toMatchObject({ code: 0, stderr: goesOn });
    const end = { type: 'Cancelled', details: { followUp: { delivery: { verdict: 'accepted' } } } };
    expect(await json('cancel', workflowId)).toMatchObject({ ended: true, end });
    expect([(await run('status', workflowId)).code, (await run('watch', workflowId)).code]).toEqual([24, 24]);
    const ended = expect.stringContaining('has already ended: cancelled');
    expect(await run('poll-now', workflowId)).toMatchObject({ code: 1, stderr: ended });
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

it.concurrent(
  'list finds follow-ups by phase, by the beginning of their outcome, and by project',
  async () => {
    const lost = { name: 'processed-then-close', operation: 'message' } as const;
    const unknown = await (await open()).follow({ status: 'active', ...ENDLESS }, SWIFT, lost);
    expect(await unknown.failure()).toMatchObject({ type: 'DeliveryUnknown' });
    const { workflowId } = unknown.handle;
    const words = ['list', '--phase', 'failed', '--outcome', 'unknown', '--project', unknown.key.projectId];
    const list = async () => (await run(...words, '--json')).stdout;
    const found = await eventually('it is listed', list, { until: (text) => text !== '[]\n' });
    const outcome = 'unknown DeliveryUnknown';
    expect(JSON.parse(found)).toMatchObject([{ workflowId, phase: 'failed', outcome, state: 'failed' }]);
    expect(found).not.toContain('receipt');
    const table = await run(...words);
    expect(table.stdout).toMatch(new RegExp(`^STARTED .*\n.* failed +${outcome} +active .*${workflowId}\n$`));
    expect(table.stderr).toContain('eventually consistent');
  },
);

it.concurrent('setup says what it found: server, attributes, and the worker on the queue', async () => {
  // Where something was read, a worker is there.
  await watched();
  const { code, stdout } = await run('setup', '--json');
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    searchAttributes: { registered: [], present: [...SEARCH_ATTRIBUTES] },
    taskQueue: (await open()).taskQueue,
    serverVersion: expect.stringMatching(/^\d+\.\d+/),
    workers: [expect.stringContaining(`${process.pid}@`)],
  });
});

it.concurrent.each([
  ...['status', 'watch', 'cancel', 'poll-now', 'schedule trigger', 'schedule update --overlap skip'],
  ...['status', 'watch', 'results', 'pause', 'resume', 'cancel', 'retry'].map((verb) => `batch ${verb}`),
])('%s of nothing is an error of usage', async (words) => {
  const stderr = expect.stringMatching(/There is no (follow-up|schedule|batch) "nothing"/);
  expect(await run(...words.split(' '), 'nothing')).toMatchObject({ code: 2, stderr });
});
