import { expect, it } from '@jest/globals';
import { failureOf, NOT_SENT } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment({ skipsTime: true });

it.concurrent.each([
  ['nothing', null, ['must be one JSON object']],
  ['a continued run', { continued: { plan: {}, watch: {} } }, []],
  [
    'many mistakes',
    { projectId: 'bad', jobId: '', prompt: 7, poling: {} },
    ['jobId: ', 'prompt: ', '"poling": '],
  ],
  // Its workflow id is not the derived one, which the message names.
  [
    'another follow-up',
    { projectId: 'bad', jobId: 'j', prompt: 'x', requestId: 'r' },
    ['"follow-up:bad:j:r"'],
  ],
])(
  'the input %s fails as InvalidRequest with every problem named, and nothing is read or sent',
  async (name, input, words) => {
    const environment = await open();
    const { type, message, details } = await failureOf(await environment.start(`bad-input-${name}`, input));
    expect(type).toBe('InvalidRequest');
    for (const word of words) expect(message).toContain(word);
    expect(details).toMatchObject({ job: null, followUp: { delivery: NOT_SENT } });
    expect(environment.sandbox.journal.entries({ projectId: 'bad' })).toEqual([]);
  },
);

it.concurrent(
  'a request without a name has that of its workflow, and its deadline counts from the first task',
  async () => {
    const environment = await open();
    const handle = await environment.client.workflow.start('followUp', {
      taskQueue: environment.taskQueue,
      workflowId: 'nightly/42',
      startDelay: '2 hours',
      args: [{ ...environment.addJob(), prompt: 'x', deadline: '1h' }],
    });
    const followUp = { requestId: 'nightly/42' };
    expect(await handle.result()).toMatchObject({ status: 'completed', followUp });
  },
);
