import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type DevServer, startDevServer } from '../../tools/lib/dev-server';
import { freePort } from '../../tools/lib/free-port';
import { FOLLOW_UP_WORKFLOW } from '../../src/contract/names';
import { METRICS } from '../../src/contract/metrics';
import { toDate } from '../../src/temporal/proto-field';
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

/** All tests share one worker on a separate Temporal server. Each test compares the metrics with their values before the test. */
let server: DevServer;
let environment: ProcessEnvironment;
let worker: WorkerProcess;
let gate: TemporalGate;
let counting: Hold;
let address: string;

beforeAll(async () => {
  const port = await freePort();
  address = `127.0.0.1:${port}`;
  const { cli } = temporal();
  server = await startDevServer({ cli, searchAttributes: true, dynamicConfig: DYNAMIC_CONFIG });
  gate = await TemporalGate.open(server.address);
  counting = gate.hold('CountWorkflowExecutions', 'call');
  environment = await ProcessEnvironment.open({ address: server.address });
  worker = await environment.startWorker({
    ...COUNT_EVERY_SECOND,
    TEMPORAL_ADDRESS: gate.address,
    // The host :: also serves IPv4, with which the tests read the metrics.
    FOLLOW_UP_METRICS_ADDRESS: `[::]:${port}`,
  });
});
afterAll(async () => {
  await environment.close();
  await gate.close();
  await server.stop();
});

/** Returns the series of this project's metrics, without the metrics of the SDK. */
async function series(): Promise<Series[]> {
  return (await scrape(address)).filter(({ name }) => name.startsWith(PREFIX));
}

/** Returns the sum of all series of a metric that have these labels. */
function sumOf(series: readonly Series[], name: string, labels: Series['labels']): number {
  const named = series.filter((each) => each.name === `${PREFIX}${name}`);
  const found = named.filter((each) => isDeepStrictEqual({ ...each.labels, ...labels }, each.labels));
  return found.reduce((sum, { value }) => sum + value, 0);
}

/** Returns the name and the labels of each counter. */
function counters(series: readonly Series[]): string[] {
  const all = series.filter(({ name }) => name.endsWith('_total'));
  return all.map(({ name, labels }) => `${name} ${JSON.stringify(Object.entries(labels).sort())}`).sort();
}

it('if the Temporal server does not count the open workflows, the worker runs follow-ups, logs a warning, and counts again later', async () => {
  const { name } = METRICS.openCountedAt;
  const countedAt = async () => (await series()).find((each) => each.name === name)?.value;
  expect((await (await environment.follow()).result()).status).toBe('completed');
  await worker.waitForLog(/^the metrics of open follow-ups are not updated/);
  expect(await countedAt()).toBeUndefined();
  const before = Date.now() / 1_000;
  counting.release();
  expect(
    await eventually('the Temporal server has counted the open workflows', countedAt),
  ).toBeGreaterThanOrEqual(before);
});

it('exports exactly the metrics and labels of the table METRICS, and counts one follow-up and one batch correctly', async () => {
  const before = await series();
  const parameters = { retryAfter: 2 };
  const limited = { name: 'http-429', operation: 'message', times: 1, parameters } as const;
  const following = await environment.follow(ENDLESS_TURN, POLLS_ON, limited);
  const item = { ...environment.addJob(), prompt: 'Continue with the next page.', ...FASTEST_OPTIONS };
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
  const sdkLabels = ['taskQueue', 'workflowType', 'activityType', 'le'];
  for (const { name, labels } of exported) {
    const row = rows.find((each) => name.replace(/_(bucket|sum|count)$/, '') === each.name);
    const found = Object.keys(labels).filter((label) => !sdkLabels.includes(label));
    const expected = new Set(['namespace', ...Object.keys(row?.labels ?? {})]);
    expect({ name, labels: found.sort() }).toEqual({ name, labels: [...expected].sort() });
  }
  const rise = (...metric: [string, Series['labels']]) =>
    sumOf(exported, ...metric) - sumOf(before, ...metric);
  expect(rise('deliveries_total', { verdict: 'accepted' })).toBe(2);
  expect(rise('ended_total', { outcome: 'completed' })).toBe(2);
  expect(rise('batch_items_ended_total', { outcome: 'completed' })).toBe(1);
  expect(rise('batches_ended_total', { outcome: 'done' })).toBe(1);
  expect(rise('requests_total', { operation: 'send', result: 'job' })).toBe(2);
  expect(rise('requests_total', { operation: 'send', result: 'http_429' })).toBe(1);
  expect(rise('request_duration_seconds_bucket', { operation: 'send', le: '600' })).toBe(3);
});

it('counts the reads with an unknown status by its word, and shows how long a follow-up has not changed, also in a worker that starts later', async () => {
  const parameters = { word: 'awaiting_user_feedback' };
  const unknown = { name: 'unknown-status', operation: 'get', parameters } as const;
  const following = await environment.follow(ENDLESS_TURN, POLLS_ON, unknown);
  const status = 'awaiting_user_feedback';
  const reads = async () => sumOf(await series(), 'unknown_status_reads_total', { status });
  await eventually('the status is counted', reads, { until: (count) => count >= 3 });
  const { events } = await following.handle.fetchHistory();
  const lastChange = events?.findLast((event) => event.upsertWorkflowSearchAttributesEventAttributes);
  const changedAt = Number(toDate(lastChange?.eventTime));

  const laterPort = await freePort();
  const laterAddress = `127.0.0.1:${laterPort}`;
  const startedAt = Date.now();
  const later = await environment.startWorker({
    ...COUNT_EVERY_SECOND,
    ...{ FOLLOW_UP_HEALTH_ADDRESS: 'off', FOLLOW_UP_METRICS_ADDRESS: laterAddress },
  });
  const ageIn = (from: string) => async () => {
    const all = (await scrape(from)).filter(({ name }) => name === METRICS.oldestUnchanged.name);
    return all.find(({ labels }) => labels.phase === 'watching')?.value;
  };
  // The change is older than the later worker. Both workers show the age of the change.
  const until = (seconds: number | undefined) => Number(seconds) * 1_000 >= startedAt - changedAt;
  for (const from of [address, laterAddress])
    expect(await eventually('the age of the change is shown', ageIn(from), { until })).toBeGreaterThan(0);
  environment.sandbox.clearFaults(following.key);
  following.changeJob({ status: 'completed' });
  await following.result();
  for (const from of [address, laterAddress])
    await eventually('the ended follow-up no longer counts', ageIn(from), { until: (age) => age === 0 });
  await later.stop();
});

it('if the times without a change can’t be measured, the worker logs one warning, although it measures them for each phase again', async () => {
  const following = await environment.follow(ENDLESS_TURN, POLLS_ON);
  const accept = gate.reject(/\/GetWorkflowExecutionHistoryReverse$/, { grpcStatus: 7 });
  const warning = /the call ListWorkflowExecutions or \w+ fails/;
  await worker.waitForLog(warning);
  const countedAt = async () =>
    (await scrape(address)).find(({ name }) => name === METRICS.openCountedAt.name)?.value ?? 0;
  // The times are measured with every fifth count.
  for (let counts = 0; counts < 10; counts += 1) {
    const last = await countedAt();
    await eventually('the workflows are counted again', countedAt, { until: (at) => at > last });
  }
  accept();
  following.changeJob({ status: 'completed' });
  await following.result();
  expect(worker.log().filter(({ msg }) => warning.test(msg))).toHaveLength(1);
});

it('counts the open workflows by state: all, batches, needs-decision, sending and unauthorized', async () => {
  const lost = { name: 'processed-then-close', operation: 'message' } as const;
  const ask = {
    ...FAST_OPTIONS,
    maxStaleness: '200ms',
    reconcileTimeout: '200ms',
    onUnknownDelivery: 'ask',
  } as const;
  const follow = (count: number, ...options: Parameters<ProcessEnvironment['follow']>) =>
    Promise.all(Array.from({ length: count }, () => environment.follow(...options)));
  await follow(2, { status: 'active', ...ENDLESS_TURN }, ask, lost);
  await follow(3, {}, {}, { name: 'hold', operation: 'get' });
  // The first read is the baseline read, so only the polls receive 401.
  await follow(4, ENDLESS_TURN, {}, { name: 'unauthorized', operation: 'get', skip: 1 });
  const item = {
    ...environment.addJob(ENDLESS_TURN),
    prompt: 'Continue with the next page.',
    ...FASTEST_OPTIONS,
  };
  await environment.followUps.batches.start([item], { batchId: 'endless' });
  const wanted = { any: 10, batch: 1, 'needs-decision': 2, sending: 3, unauthorized: 4 };
  const counts = async (): Promise<object> => {
    const all = (await series()).filter(({ name }) => name === METRICS.open.name);
    return Object.fromEntries(all.map(({ labels, value }) => [labels.state, value])) as object;
  };
  const until = (found: object) => isDeepStrictEqual(found, wanted);
  expect(await eventually('every open workflow is counted', counts, { until })).toEqual(wanted);
});

it('the SDK exports every metric and label that the alerts and the dashboard query', async () => {
  // No worker can decode the input of this workflow, so that the metric of failed workflow tasks has a value.
  await environment.client.workflowService.startWorkflowExecution({
    namespace: 'default',
    workflowId: `undecodable-${randomUUID()}`,
    workflowType: { name: FOLLOW_UP_WORKFLOW },
    taskQueue: { name: environment.taskQueue },
    requestId: randomUUID(),
    input: { payloads: [{ metadata: { encoding: Buffer.from('binary/unknown') }, data: Buffer.from('?') }] },
  });
  for (const { metric, labels } of SELECTORS.filter((each) => each.metric.startsWith('temporal_'))) {
    const isSelected = (each: Series) =>
      each.name === metric && labels.every(([label, pattern]) => pattern.test(each.labels[label] ?? ''));
    const found = async () => (await scrape(address)).find(isSelected);
    expect(await eventually(`${metric} is exported`, found)).toBeDefined();
  }
});
