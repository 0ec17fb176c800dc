import { expect, it } from '@jest/globals';
import { Client } from '@temporalio/client';
import { FollowUpClient } from '../../../src/entries/client';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import type { Environment } from '../../harness/environment';
import { sharedEnvironment } from '../../harness/shared-environment';
import type { TestBatch } from '../../harness/test-batch';

const { newBatch } = sharedEnvironment();

type Listing = Awaited<
  ReturnType<Environment['client']['workflowService']['listWorkflowExecutions']>
>['executions'];

/** Lists the items of a batch until the list meets a condition. @param areListed receives, for each item, whether it has ended */
async function listItems(
  { batchId, environment }: TestBatch,
  areListed: (ended: readonly boolean[]) => boolean,
): Promise<Listing> {
  const { workflowService, options } = environment.client;
  const query = `WorkflowType = 'followUp' AND FollowUpBatch = '${batchId}'`;
  const { executions } = await eventually(
    'the items are listed',
    () => workflowService.listWorkflowExecutions({ namespace: options.namespace, query }),
    { until: (listed) => areListed(listed.executions.map(({ closeTime }) => Boolean(closeTime))) },
  );
  return executions;
}

/**
 * Returns a handle of the batch whose visibility list shows an earlier listing until `endLag` is called, or for a number of lists.
 * The list of a real Temporal server lags by up to a minute.
 */
function withLateList({ batchId, environment }: TestBatch, executions: Listing, lateLists = Infinity) {
  const { connection } = environment.client;
  const { workflowService } = connection;
  let lists = 0;
  const listWorkflowExecutions = (request: { readonly query?: string | null }) => {
    lists += 1;
    if (lists > lateLists) return workflowService.listWorkflowExecutions(request);
    const isOfOpen = request.query?.includes('CloseTime IS NULL');
    const matching = executions.filter(({ closeTime }) => !closeTime === isOfOpen);
    return Promise.resolve({ executions: matching, nextPageToken: new Uint8Array() });
  };
  const value: unknown = Object.create(workflowService, {
    listWorkflowExecutions: { value: listWorkflowExecutions },
  });
  const late = Object.create(connection, { workflowService: { value } }) as typeof connection;
  const followUps = new FollowUpClient(new Client({ connection: late }));
  const endLag = () => {
    lateLists = 0;
  };
  return { handle: followUps.batches.getHandle(batchId), endLag };
}

const areTwoRunning = (ended: readonly boolean[]) => ended.length === 2 && !ended.includes(true);

it('the results of an ended batch have items that the list still shows as running', async () => {
  const batch = await newBatch(2, ENDLESS_TURN);
  await batch.startUntilSent(2);
  const { handle } = withLateList(batch, await listItems(batch, areTwoRunning));
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
  const { handle, endLag } = withLateList(batch, await listItems(batch, areTwoRunning));
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
  const { handle } = withLateList(batch, await listItems(batch, (ended) => ended.includes(true)));
  await batch.handle.retry({ includeUnknown: true });
  await batch.handle.result();
  expect(await handle.listResults()).toMatchObject([{ outcome: 'completed' }]);
});

it('cancel with cancelRunning also cancels the items of a batch that has just ended if they are listed late', async () => {
  const batch = await newBatch(2, ENDLESS_TURN);
  await batch.startUntilSent(2);
  await listItems(batch, areTwoRunning);
  await batch.handle.cancel();
  expect(await batch.handle.result()).toMatchObject({ state: 'cancelled' });
  // Two lists in a row without a further item are not the end.
  const { handle } = withLateList(batch, [], 3);
  expect(await handle.cancel({ cancelRunning: true })).toBe(2);
});

it('while a retry runs, the results need no description of the items that it has not started again', async () => {
  const forbidden = { name: 'status', operation: 'get', times: 1, parameters: { code: 403 } } as const;
  const batch = await newBatch(2, ENDLESS_TURN, {}, forbidden);
  await batch.start();
  await batch.handle.result();
  await listItems(batch, (ended) => ended.length === 2 && !ended.includes(false));
  await batch.handle.retry({ concurrency: 1 });
  await batch.waitUntilSent(1);
  const { connection } = batch.environment.client;
  const { workflowService } = connection;
  const describedIds: unknown[] = [];
  const describeWorkflowExecution = (
    request: Parameters<typeof workflowService.describeWorkflowExecution>[0],
  ) => {
    describedIds.push(request.execution?.workflowId);
    return workflowService.describeWorkflowExecution(request);
  };
  const value: unknown = Object.create(workflowService, {
    describeWorkflowExecution: { value: describeWorkflowExecution },
  });
  const counted = Object.create(connection, { workflowService: { value } }) as typeof connection;
  const { batches } = new FollowUpClient(new Client({ connection: counted }));
  expect(await batches.getHandle(batch.batchId).listResults()).toEqual([]);
  expect(new Set(describedIds)).toEqual(new Set([batch.workflow.workflowId]));
  batch.endTurns();
  await batch.waitUntilSent(2);
  await batch.finish();
  const outcomes = { outcome: 'completed' };
  expect(await batch.handle.listResults()).toMatchObject([outcomes, outcomes]);
});
