import { expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { FollowUpClient } from '../../../src/entries/client';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';
import type { TestBatch } from '../../harness/test-batch';

const { newBatch } = sharedEnvironment();

/**
 * Returns a handle of the batch whose visibility list shows the items as they are now, until `endLag` is called. The list of a real
 * Temporal server lags by up to a minute. `areListed` is the condition that the list must meet first.
 */
async function withLateList(
  { batchId, environment }: TestBatch,
  areListed: (closed: readonly boolean[]) => boolean,
) {
  const { connection, options } = environment.client;
  const { workflowService } = connection;
  const query = `WorkflowType = 'followUp' AND FollowUpBatch = '${batchId}'`;
  const { executions } = await eventually(
    'the items are listed',
    () => workflowService.listWorkflowExecutions({ namespace: options.namespace, query }),
    { until: (listed) => areListed(listed.executions.map(({ closeTime }) => Boolean(closeTime))) },
  );
  let isLate = true;
  const listWorkflowExecutions = (request: { readonly query?: string | null }) =>
    isLate
      ? Promise.resolve({
          executions: executions.filter(
            ({ closeTime }) => !closeTime === request.query?.includes('CloseTime IS NULL'),
          ),
          nextPageToken: new Uint8Array(),
        })
      : workflowService.listWorkflowExecutions(request);
  const value: unknown = Object.create(workflowService, {
    listWorkflowExecutions: { value: listWorkflowExecutions },
  });
  const late = Object.create(connection, { workflowService: { value } }) as typeof connection;
  const followUps = new FollowUpClient(new Client({ connection: late }));
  const endLag = () => {
    isLate = false;
  };
  return { handle: followUps.batches.getHandle(batchId), endLag };
}

const areTwoRunning = (closed: readonly boolean[]) => closed.length === 2 && !closed.includes(true);

it('the results of an ended batch have items that the list still shows as running', async () => {
  const batch = await newBatch(2, ENDLESS_TURN);
  await batch.startUntilSent(2);
  const { handle } = await withLateList(batch, areTwoRunning);
  batch.endTurns();
  await batch.handle.result();
  const outcomes = { outcome: 'completed' };
  expect(await handle.listResults()).toMatchObject([outcomes, outcomes]);
  const watched = [];
  for await (const { results } of handle.watch()) watched.push(...results);
  expect(watched).toMatchObject([outcomes, outcomes]);
});

it('watch reports an item that the list shows as ended later than the summary', async () => {
  const batch = await newBatch(2, ENDLESS_TURN);
  await batch.startUntilSent(2);
  const { handle, endLag } = await withLateList(batch, areTwoRunning);
  batch.endTurns(batch.requests.slice(0, 1));
  for await (const { view, results } of handle.watch()) {
    if (view?.summary?.ended === 1) endLag();
    if (results.length === 0) continue;
    expect(results).toMatchObject([{ jobId: batch.requests[0]?.jobId, outcome: 'completed' }]);
    break;
  }
  await batch.handle.cancel({ cancelRunning: true });
});

it('the results of a batch after a retry with includeUnknown have the outcome of the latest run', async () => {
  const unknown = { name: 'close-after-read', operation: 'message', times: 1 } as const;
  const batch = await newBatch(1, {}, { onUnknownDelivery: 'fail' }, unknown);
  await batch.start();
  await batch.handle.result();
  expect(await batch.handle.listResults()).toMatchObject([{ outcome: 'DeliveryUnknown' }]);
  const { handle } = await withLateList(batch, (closed) => closed.includes(true));
  await batch.handle.retry({ includeUnknown: true });
  await batch.handle.result();
  expect(await handle.listResults()).toMatchObject([{ outcome: 'completed' }]);
});
