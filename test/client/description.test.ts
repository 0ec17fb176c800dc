import { expect, it } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { readTaskFailure } from '../../src/client/description';

it('the failure of a workflow task without search attributes names the command that registers them', async () => {
  const message =
    'BadSearchAttributes: Namespace default has no mapping defined for search attribute AgentJob';
  const events = [{ workflowTaskFailedEventAttributes: { failure: { message } } }];
  const client = {
    options: { namespace: 'default' },
    workflowService: { getWorkflowExecutionHistoryReverse: () => Promise.resolve({ history: { events } }) },
  } as unknown as Client;
  const run = { workflowId: 'w', runId: 'r', raw: { pendingWorkflowTask: { attempt: 2 } } } as never;
  expect(await readTaskFailure(client, run)).toBe(
    `the workflow task keeps failing and is retried: ${message}; run \`agent-follow-up setup\``,
  );
});
