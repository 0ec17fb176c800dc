import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, type WorkflowHandle } from '@temporalio/client';
import { type BillableActions, FollowUpClient, type FollowUpCost, NotFoundError } from '../../src/client';
import { sumActions, totalOf } from '../../src/client/cost';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { freePorts } from '../../dev/free-ports';
import { eventually } from '../harness/eventually';
import { Environment } from '../harness/environment';
import type { Following } from '../harness/following';
import { resetWorkflow } from '../harness/reset';
import { temporal } from '../harness/temporal';
import { clientOf } from './client-under-test';

const ENDLESS = { turn: { durationMs: null } };

let server: DevServer;
let environment: Environment;
/** Its worker lets no poll wait in its process. */
let byRetries: Environment;
let metricsUrl: string;

beforeAll(async () => {
  const [metricsPort = 0] = await freePorts(1);
  metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
  // So low that a watch of some polls reaches it, as a long one reaches the default of 4,096 events.
  const dynamicConfig = { 'limit.historyCount.suggestContinueAsNew': 45 };
  const { cli } = temporal();
  server = await startDevServer({ cli, metricsPort, searchAttributes: true, dynamicConfig });
  environment = await Environment.open({ address: server.address });
  byRetries = await Environment.open({ address: server.address, inProcessPolls: 0 });
});
afterAll(async () => {
  await environment.close();
  await byRetries.close();
  await server.stop();
});

/** Of each kind, the names under which the server counts it (`action_type` of its metric `action`). */
const COUNTED_AS: Readonly<Partial<Record<keyof BillableActions, readonly string[]>>> = {
  starts: ['grpc_StartWorkflowExecution', 'command_ContinueAsNewWorkflowExecution'],
  resets: ['grpc_ResetWorkflowExecution'],
  timers: ['command_StartTimer'],
  activities: ['command_ScheduleActivityTask'],
  activityRetries: ['activity_retry'],
  localActivities: ['command_BatchMarkers'],
  searchAttributeUpserts: ['command_UpsertWorkflowSearchAttributes'],
  updates: ['message_UpdateWorkflowExecution_Acceptance'],
};

/** What the server itself has counted, by the type of the action; it publishes them about once a second. */
async function serverCounts(): Promise<(type: string) => number> {
  const published = await (await fetch(metricsUrl)).text();
  const lines = published
    .split('\n')
    .filter((line) => line.startsWith('action{') && line.includes('namespace="default"'));
  return (type) =>
    sum(
      lines
        .filter((line) => line.includes(`action_type="${type}"`))
        .map((line) => Number(line.slice(line.lastIndexOf('}') + 1))),
    );
}

async function countedByServer(): Promise<BillableActions> {
  const countOf = await serverCounts();
  return sumActions(Object.entries(COUNTED_AS).map(([kind, types]) => ({ [kind]: sum(types.map(countOf)) })));
}

/** Of all activities; no history shows them. */
async function heartbeatsCountedByServer(): Promise<number> {
  return (await serverCounts())('grpc_RecordActivityTaskHeartbeat');
}

/** Ends the turn, and waits for the end of the follow-up. */
async function end(
  following: Following,
  handle: WorkflowHandle = following.handle,
  { sandbox } = environment,
): Promise<void> {
  sandbox.changeJob(following.key, { status: 'completed', prLink: 'https://code.test/pull/1' });
  await handle.result();
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

async function read(following: Following, times: number, { sandbox } = environment): Promise<void> {
  await sandbox.journal.waitFor({ ...following.key, operation: 'get' }, { atLeast: times });
}

/** A client to which a run is gone as retention takes it (a deletion takes the dev server half a minute). */
function withoutRun(gone: string): Client {
  const client = new Client({ connection: environment.client.connection, namespace: server.namespace });
  const getHandle = client.workflow.getHandle.bind(client.workflow);
  client.workflow.getHandle = (workflowId, runId, options) =>
    getHandle(workflowId, runId === gone ? randomUUID() : runId, options);
  return client;
}

const POLLING = { initial: '200ms', growth: 0, maximum: '1s', jitter: 0 } as const;

describe('what a follow-up has cost', () => {
  it('agrees with what the server itself has counted, over retries, updates, continued runs and resets', async () => {
    const inProcess = await environment.follow(ENDLESS, { polling: { ...POLLING, timerPolls: 1 } });
    const retried = await byRetries.follow(ENDLESS, { polling: { ...POLLING, timerPolls: 1 } });
    const continued = await environment.follow(ENDLESS, { polling: { ...POLLING, timerPolls: 'all' } });
    const reset = await environment.follow(ENDLESS, {
      polling: { ...POLLING, timerPolls: 'all' },
      // The new run can't tell whether the one before has sent.
      onUnknownDelivery: 'assume-delivered',
    });
    const cost = ({ handle }: Following): Promise<FollowUpCost> =>
      clientOf(environment).getHandle(handle.workflowId).cost();

    await read(reset, 3);
    const again = await resetWorkflow(environment.client, reset.handle.workflowId, 'send');
    await retried.handle.executeUpdate('extendDeadline', { args: ['60s'] });
    await read(retried, 5, byRetries);
    // Its activity has not ended, and history does not show its attempts yet.
    expect((await cost(retried)).actions.activityRetries).toBeGreaterThan(0);
    await read(inProcess, 5);
    await read(continued, 7);
    await end(retried, retried.handle, byRetries);
    await end(inProcess);
    await end(continued);
    await end(reset, again);
    const costs = [await cost(inProcess), await cost(retried), await cost(continued), await cost(reset)];

    expect(costs.map(({ runs }) => runs > 1)).toEqual([false, false, true, true]);
    expect(costs.map(({ earlierRunsGone }) => earlierRunsGone)).toEqual([false, false, false, false]);
    const counted = sumActions(costs.map(({ actions }) => actions));
    expect(counted).toMatchObject({ resets: 1, updates: 1 });
    expect(costs.map(({ actions }) => actions.activityRetries > 0)).toEqual([false, true, false, false]);
    await eventually('the server has published its counts', async () => {
      return totalOf(await countedByServer()) >= totalOf(counted);
    });
    expect(await countedByServer()).toEqual(counted);
    // One of each send, one of the poll in process; a retry has none.
    expect(await heartbeatsCountedByServer()).toBe(5);

    const { events, bytes, polls, runs: runsOfContinued } = await cost(continued);
    const runs = [
      await environment.client.workflow
        .getHandle(continued.handle.workflowId, continued.firstRunId)
        .describe(),
      await continued.handle.describe(),
    ];
    expect(events).toBeGreaterThanOrEqual(sum(runs.map(({ historyLength }) => historyLength)));
    expect(bytes).toBeGreaterThanOrEqual(sum(runs.map(({ historySize = NaN }) => historySize)));
    expect(polls).toBe((await continued.result()).followUp.polls);

    const left = await new FollowUpClient(withoutRun(continued.firstRunId))
      .getHandle(continued.handle.workflowId)
      .cost();
    expect(left).toMatchObject({ runs: runsOfContinued - 1, polls });
    expect(left.earlierRunsGone).toBe(true);
    expect(left.events).toBeLessThan(events);
  });

  it('is nothing that can be told of a workflow that is none', async () => {
    await expect(clientOf(environment).getHandle('follow-up:p:j:nothing').cost()).rejects.toThrow(
      NotFoundError,
    );
  });
});
