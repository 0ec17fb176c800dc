import { expect, it } from '@jest/globals';
import { FollowUpClient } from '../../../src/entries/client';
import { keywordAttribute } from '../../../src/contract/follow-up-start-options';
import { FOLLOW_UP_WORKFLOW } from '../../../src/contract/names';
import { eventually } from '../../../tools/lib/eventually';
import { Environment } from '../../harness/environment';
import { newTaskQueues } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';
import { TestBatch } from '../../harness/test-batch';
import { collectWorkflowIds } from '../../harness/workflow-ids';

const { open } = sharedEnvironment();

it('a batch that is cancelled with cancelRunning while no worker runs starts nothing when a worker runs again, and its running follow-ups end', async () => {
  const environment = await open();
  const { client, followUps } = environment;
  const taskQueues = newTaskQueues();
  const { batches } = new FollowUpClient(client, { taskQueue: taskQueues.followUp });
  const { batchId, requests } = new TestBatch(environment).addItems(3);
  const batch = await batches.start(requests, { batchId });
  const item = await client.workflow.start(FOLLOW_UP_WORKFLOW, {
    ...{ workflowId: `item-of-${batchId}`, taskQueue: taskQueues.followUp, args: [requests[0]] },
    typedSearchAttributes: [keywordAttribute('FollowUpBatch', batchId)],
  });
  const list = () => collectWorkflowIds(followUps.list({ batchId }));
  await eventually('the follow-up is listed', async () => (await list()).length === 1);
  await expect(batch.cancel({ cancelRunning: true })).rejects.toMatchObject({
    code: 'WAIT_TIMEOUT',
    workflowId: batch.workflowId,
    message: expect.stringMatching(
      /no worker polls the task queue "follow-up-\w+"; start a worker\. The batch and 1 running follow-up will be cancelled when a worker runs\. Then repeat the call/,
    ),
  });
  const withWorkers = await Environment.open({ taskQueues });
  expect(await batch.result()).toMatchObject({ state: 'cancelled', summary: { ended: 0 } });
  await expect(item.result()).rejects.toThrow('cancelled');
  expect(await batch.cancel({ cancelRunning: true })).toBe(0);
  expect(await list()).toEqual([item.workflowId]);
  await withWorkers.close();
});
