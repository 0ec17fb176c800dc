import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import getPort from 'get-port';
import { FOLLOW_UP_WORKFLOW } from '../../src/contract/names';
import { METRICS } from '../../src/contract/metrics';
import { SELECTORS } from '../deploy/alert-rules';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN, FAST_OPTIONS } from '../harness/follow-up-under-test';
import { waitForAttempt } from '../harness/pending-poll';
import { COUNT_EVERY_SECOND, ProcessEnvironment } from '../harness/process-environment';
import { scrape, type Series } from '../../tools/lib/scrape';
import { DYNAMIC_CONFIG, temporal } from '../harness/temporal';
import { type Hold, TemporalGate } from '../harness/temporal-gate';
import type { WorkerProcess } from '../harness/worker-process';
import { FASTEST_OPTIONS } from '../harness/test-batch';

const PREFIX = 'agent_follow_up_';
const POLLS_ON = { ...FAST_OPTIONS, polling: { ...FAST_OPTIONS.polling, timerPolls: 0 } };

/** One worker on a server of its own for all of them, so that each test counts from what the ones before it have left. */
let server: DevServer;
let environment: ProcessEnvironment;
let worker: WorkerProcess;
let gate: TemporalGate;
let counting: Hold;
let address: string;

beforeAll(async () => {
  const port = await getPort();
  address = `127.0.0.1:${port}`;
  const { cli } = temporal();
  server = await startDevServer({ cli, searchAttributes: true, dynamicConfig: DYNAMIC_CONFIG });
  gate = await TemporalGate.open(server.address);
  counting = gate.hold('CountWorkflowExecutions', 'call');
  environment = await ProcessEnvironment.open({ address: server.address });
  worker = await environment.startWorker({
    ...COUNT_EVERY_SECOND,
    TEMPORAL_ADDRESS: gate.address,
    FOLLOW_UP_METRICS_ADDRESS: address,
  });
});
afterAll(async () => {
  await environment.close();
  await gate.close();
  await server.stop();
});

/** The project's own. */
async function series(): Promise<Series[]> {
  return (await scrape(address)).filter(({ name }) => name.startsWith(PREFIX));
}

/** The sum of the series of a name that have these labels. */
function sumOf(series: readonly Series[], name: string, labels: Series['labels']): number {
  const meant = series.filter((each) => each.name === `${PREFIX}${name}`);
  const found = meant.filter((each) => isDeepStrictEqual({ ...each.labels, ...labels }, each.labels));
  return found.reduce((sum, { value }) => sum + value, 0);
}

/** Names and labels of the counters. */
function counters(series: readonly Series[]): string[] {
  const all = series.filter(({ name }) => name.endsWith('_total'));
  return all.map(({ name, labels }) => `${name} ${JSON.stringify(Object.entries(labels).sort())}`).sort();
}

it('a server that does not count what is open is asked again, and the worker works', async () => {
  const { name } = METRICS.openCountedAt;
  const askedAt = async () => (await series()).find((each) => each.name === name)?.value;
  expect((await (await environment.follow()).result()).status).toBe('completed');
  await worker.waitForLog(/^could not count the open workflows/);
  expect(await askedAt()).toBeUndefined();
  const before = Date.now() / 1_000;
  counting.release();
  expect(await eventually('the server has counted', askedAt)).toBeGreaterThanOrEqual(before);
});

it('every metric of the table is exported, with its labels, and none else', async () => {
  const before = await series();
  const parameters = { retryAfter: 2 };
  const limited = { name: 'http-429', operation: 'message', times: 1, parameters } as const;
  const following = await environment.follow(ENDLESS_TURN, POLLS_ON, limited);
  const item = { ...environment.addJob(), prompt: 'Go on.', ...FASTEST_OPTIONS };
  const batch = await environment.followUps.batches.start([item], { batchId: 'ends' });
  await batch.result();
  await waitForAttempt(following, 1);
  following.changeJob({ status: 'completed' });
  await following.result();

  const exported = await series();
  expect(counters(exported)).toEqual(counters(before));
  const rows = Object.values(METRICS);
  const names = new Set(exported.map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')));
  expect([...names].sort()).toEqual(rows.map(({ name }) => name).sort());
  const bySdk = ['taskQueue', 'workflowType', 'activityType', 'le'];
  for (const { name, labels } of exported) {
    const row = rows.find((each) => name.startsWith(each.name));
    const own = Object.keys(labels).filter((label) => !bySdk.includes(label));
    const all = new Set(['namespace', ...Object.keys(row?.labels ?? {})]);
    expect({ name, own: own.sort() }).toEqual({ name, own: [...all].sort() });
  }
  const rise = (...what: [string, Series['labels']]) => sumOf(exported, ...what) - sumOf(before, ...what);
  expect(rise('deliveries_total', { verdict: 'accepted' })).toBe(2);
  expect(rise('ended_total', { outcome: 'completed' })).toBe(2);
  expect(rise('batch_items_ended_total', { outcome: 'completed' })).toBe(1);
  expect(rise('batches_ended_total', { outcome: 'done' })).toBe(1);
  expect(rise('requests_total', { operation: 'send', result: 'job' })).toBe(2);
  expect(rise('requests_total', { operation: 'send', result: 'http_429' })).toBe(1);
  expect(rise('request_duration_seconds_bucket', { operation: 'send', le: '600' })).toBe(3);
});

it('what is open is counted by what it waits for', async () => {
  const lost = { name: 'processed-then-close', operation: 'message' } as const;
  const ask = {
    ...FAST_OPTIONS,
    maxStaleness: '200ms',
    reconcileTimeout: '200ms',
    onUnknownDelivery: 'ask',
  } as const;
  const follow = (count: number, ...what: Parameters<ProcessEnvironment['follow']>) =>
    Promise.all(Array.from({ length: count }, () => environment.follow(...what)));
  await follow(2, { status: 'active', ...ENDLESS_TURN }, ask, lost);
  await follow(3, {}, {}, { name: 'hold', operation: 'get' });
  // The look before the send is the first read.
  await follow(4, ENDLESS_TURN, {}, { name: 'unauthorized', operation: 'get', skip: 1 });
  const item = { ...environment.addJob(ENDLESS_TURN), prompt: 'Go on.', ...FASTEST_OPTIONS };
  await environment.followUps.batches.start([item], { batchId: 'endless' });
  const wanted = { any: 10, batch: 1, 'needs-decision': 2, sending: 3, unauthorized: 4 };
  const counts = async (): Promise<object> => {
    const all = (await series()).filter(({ name }) => name === METRICS.open.name);
    return Object.fromEntries(all.map(({ labels, value }) => [labels.state, value])) as object;
  };
  const until = (found: object) => isDeepStrictEqual(found, wanted);
  expect(await eventually('it is counted', counts, { until })).toEqual(wanted);
});

it('alerts and panels ask for metrics that the SDK has', async () => {
  // One that no worker can decode.
  await environment.client.workflowService.startWorkflowExecution({
    namespace: 'default',
    workflowId: `undecodable-${randomUUID()}`,
    workflowType: { name: FOLLOW_UP_WORKFLOW },
    taskQueue: { name: environment.taskQueue },
    requestId: randomUUID(),
    input: { payloads: [{ metadata: { encoding: Buffer.from('binary/unknown') }, data: Buffer.from('?') }] },
  });
  for (const { metric, labels } of SELECTORS.filter((each) => each.metric.startsWith('temporal_'))) {
    const isMeant = (each: Series) =>
      each.name === metric && labels.every(([label, pattern]) => pattern.test(each.labels[label] ?? ''));
    const found = async () => (await scrape(address)).find(isMeant);
    expect(await eventually(`${metric} is exported`, found)).toBeDefined();
  }
});
