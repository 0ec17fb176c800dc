import { expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { failureOf, NOT_SENT } from '../../harness/following';
import { eventsOf } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment({ skipsTime: true });

it.concurrent(
  'an invalid input fails as InvalidRequest with every problem named, and nothing is read or sent',
  async () => {
    const environment = await open();
    const bad = { projectId: 'bad-input', jobId: '', prompt: 7, deadline: '10', poling: {} };
    const { type, message, details } = await failureOf(await environment.start('bad-input-1', bad));
    expect(type).toBe('InvalidRequest');
    for (const field of ['jobId', 'prompt', 'deadline', '"poling"']) expect(message).toContain(`${field}: `);
    expect(details).toMatchObject({ job: null, followUp: { delivery: NOT_SENT } });
    expect(environment.sandbox.journal.entries({ projectId: 'bad-input' })).toEqual([]);
  },
);

it.concurrent.each([
  ['a text', 'hello', 'must be one JSON object'],
  ['nothing', null, 'must be one JSON object'],
  ['a continued run', { continued: { plan: {}, watch: {} } }, ''],
  // Its workflow id is not the derived one, which the message names.
  ['another follow-up', { projectId: 'p', jobId: 'j', prompt: 'x', requestId: 'r' }, '"follow-up:p:j:r"'],
])('an invalid input fails the same way as %s', async (name, input, words) => {
  const environment = await open();
  const { type, message } = await failureOf(await environment.start(`bad-input-${name}`, input));
  expect(type).toBe('InvalidRequest');
  expect(message).toContain(words);
});

it.concurrent('a request without a name has that of its workflow', async () => {
  const environment = await open();
  const handle = await environment.start('nightly/42', { ...environment.addJob(), prompt: 'x' });
  expect(await handle.result()).toMatchObject({ followUp: { requestId: 'nightly/42' } });
});

it.concurrent('the deadline counts from the first task, not from a start that was delayed', async () => {
  const environment = await open();
  const handle = await environment.client.workflow.start('followUp', {
    taskQueue: environment.taskQueue,
    workflowId: 'delayed-start',
    startDelay: '2 hours',
    args: [{ ...environment.addJob(), prompt: 'x', deadline: '1h' }],
  });
  expect(await handle.result()).toMatchObject({ status: 'completed' });
});

it.concurrent('a cron schedule is refused: its later runs would never send', async () => {
  const environment = await open();
  const { client, taskQueue, sandbox } = environment;
  const { projectId, jobId } = environment.addJob();
  const handle = await client.workflow.start('followUp', {
    ...{ taskQueue, workflowId: 'each-minute', cronSchedule: '@every 1s' },
    args: [{ projectId, jobId, prompt: 'x' }],
  });
  const failed = await eventually('its first run ends', async () => {
    const events = await eventsOf(client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId));
    return events.at(-1)?.workflowExecutionFailedEventAttributes?.failure;
  });
  await handle.terminate();
  expect(failed.message).toBe(
    'Nothing was sent. Invalid request: cronSchedule: is for work that is repeated; use a Temporal Schedule instead.',
  );
  expect(sandbox.journal.entries({ projectId, jobId })).toEqual([]);
});
