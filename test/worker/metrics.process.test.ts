import { expect, it } from '@jest/globals';
import { freePorts } from '../../dev/free-ports';
import { METRICS } from '../../src/core/metrics';
import { eventually } from '../harness/eventually';
import { ENDLESS, QUICK } from '../harness/following';
import { Operator } from '../harness/operator';
import { ASKS_EVERY_SECOND, ProcessEnvironment } from '../harness/process-environment';
import { scrape, type Series } from '../harness/scrape';
import { showsPhase } from '../harness/scenario';
import { temporal } from '../harness/temporal';
import { TemporalGate } from '../harness/temporal-gate';
import type { WorkerProcess } from '../harness/worker-process';

const PREFIX = 'agent_follow_up_';
const POLLS_ON = { ...QUICK, polling: { ...QUICK.polling, timerPolls: 0 } };

/** A worker with metrics, for the length of a test; `series` are the project's own. */
function withMetrics(
  test: (
    environment: ProcessEnvironment,
    series: () => Promise<Series[]>,
    worker: WorkerProcess,
  ) => Promise<void>,
  env: NodeJS.ProcessEnv = {},
): Promise<void> {
  return ProcessEnvironment.with({}, async (environment) => {
    const [port = 0] = await freePorts(1);
    const address = `127.0.0.1:${port}`;
    const variables = { ...ASKS_EVERY_SECOND, ...env, FOLLOW_UP_METRICS_ADDRESS: address };
    const worker = await environment.startWorker(variables);
    const own = async () => (await scrape(address)).filter(({ name }) => name.startsWith(PREFIX));
    await test(environment, own, worker);
  });
}

/** The sum of the series of a name that have these labels; undefined where there is none. */
function valueOf(series: readonly Series[], name: string, labels: Series['labels'] = {}): number | undefined {
  const found = series.filter(
    (each) =>
      each.name === `${PREFIX}${name}` &&
      Object.entries(labels).every(([label, value]) => each.labels[label] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
}

it.concurrent('every metric of the table is exported, with its labels, and none else', () =>
  withMetrics(async (environment, series) => {
    const parameters = { retryAfter: 2 };
    const limited = { name: 'http-429', operation: 'message', times: 1, parameters } as const;
    const following = await environment.follow(ENDLESS, POLLS_ON, limited);
    const item = { ...environment.addJob(), prompt: 'Go on.', ...QUICK };
    const { batches } = environment.followUps;
    const batch = await batches.start([item], { batchId: `metrics-${item.projectId}` });
    await batch.result();
    await eventually('a poll waits', async () => valueOf(await series(), 'polls_waiting') === 1);
    following.changeJob({ status: 'completed' });
    await following.result();
    await eventually('the poll has left', async () => valueOf(await series(), 'polls_waiting') === 0);

    const exported = await series();
    const rows = Object.values(METRICS);
    const names = new Set(exported.map(({ name }) => name.replace(/_(bucket|sum|count)$/, '')));
    expect([...names].sort()).toEqual(rows.map(({ name }) => name).sort());
    for (const { name, labels } of exported) {
      const row = rows.find((each) => name.startsWith(each.name));
      const own = Object.keys(labels).filter(
        (label) => !['namespace', 'taskQueue', 'workflowType', 'activityType', 'le'].includes(label),
      );
      expect({ name, own: own.sort() }).toEqual({ name, own: Object.keys(row?.labels ?? {}).sort() });
    }
    expect(valueOf(exported, 'deliveries_total', { verdict: 'accepted' })).toBe(2);
    expect(valueOf(exported, 'ends_total', { outcome: 'completed' })).toBe(2);
    expect(valueOf(exported, 'batch_items_total', { outcome: 'completed' })).toBe(1);
    expect(valueOf(exported, 'batch_ends_total', { outcome: 'done' })).toBe(1);
    expect(valueOf(exported, 'exchanges_total', { operation: 'send', answer: 'job' })).toBe(2);
    expect(valueOf(exported, 'exchanges_total', { operation: 'send', answer: 'http 429' })).toBe(1);
    expect(valueOf(exported, 'cooldown_seconds_total')).toBe(2);
    expect(valueOf(exported, 'exchange_seconds_bucket', { operation: 'send', le: '600' })).toBe(3);
    expect(valueOf(exported, 'polls_waiting_limit')).toBeGreaterThan(0);
  }),
);

it.concurrent(
  'an unknown delivery counts from 0 to 1, and a follow-up that waits for a decision is open as such',
  () =>
    withMetrics(async (environment, series) => {
      expect(valueOf(await series(), 'deliveries_total', { verdict: 'unknown' })).toBe(0);
      const lost = { name: 'processed-then-close', operation: 'message' } as const;
      const asked = { ...QUICK, reconcile: '200ms', confirm: '200ms' } as const;
      const asking = await environment.follow(ENDLESS, { ...asked, onUnknownDelivery: 'ask' }, lost, {
        name: 'stale',
        parameters: { for: '1h' },
      });
      const failing = await environment.follow({ status: 'active', ...ENDLESS }, asked, lost);
      expect(await failing.failure()).toMatchObject({ type: 'DeliveryUnknown' });
      await showsPhase(asking, 'needs-decision');
      const state = { state: 'needs-decision' };
      await eventually(
        'the server counts it',
        async () => (valueOf(await series(), 'open_workflows', state) ?? 0) > 0,
      );
      const exported = await series();
      expect(valueOf(exported, 'deliveries_total', { verdict: 'unknown' })).toBe(1);
      expect(valueOf(exported, 'ends_total', { outcome: 'DeliveryUnknown', evidence: 'none' })).toBe(1);
      expect(valueOf(exported, 'exchanges_total', { operation: 'send', answer: 'job' })).toBeUndefined();
      await asking.handle.cancel();
      await expect(asking.result()).rejects.toThrow();
      await eventually('the end is counted', async () =>
        valueOf(await series(), 'ends_total', { outcome: 'cancelled', evidence: 'none' }),
      );
      // The server may have the last task of a workflow done again, which then counts again.
      expect(valueOf(await series(), 'deliveries_total', { verdict: 'unknown' })).toBeGreaterThan(1);
    }),
);

it.concurrent('reads that a limit holds back are late by seconds', () =>
  withMetrics(async (environment, series) => {
    const operator = new Operator(environment.client);
    await operator.limit(environment.taskQueues.read, 0.5);
    const asked = { ...QUICK, polling: { ...QUICK.polling, timerPolls: 'all' } } as const;
    await Promise.all([1, 2, 3].map(() => environment.follow(ENDLESS, asked)));
    const late = await eventually(
      'reads are late',
      async () => {
        const exported = await series();
        const [sum = 0, early = 0, all = 0] = [
          valueOf(exported, 'read_lateness_seconds_sum'),
          valueOf(exported, 'read_lateness_seconds_bucket', { le: '0.5' }),
          valueOf(exported, 'read_lateness_seconds_count'),
        ];
        return sum > 2 && { early, all };
      },
      { timeoutMs: 40_000 },
    );
    expect(late.early).toBeLessThan(late.all);
  }),
);

it.concurrent('a server that does not count what is open is asked again, and the worker works', async () => {
  const gate = await TemporalGate.open(temporal().address);
  const held = gate.hold('CountWorkflowExecutions', 'call');
  const env = { TEMPORAL_ADDRESS: gate.address };
  await withMetrics(async (environment, series, worker) => {
    const askedAt = async () => valueOf(await series(), 'open_asked_timestamp_seconds');
    expect((await (await environment.follow()).result()).status).toBe('completed');
    await worker.says(/^the server does not count what is open/);
    expect(await askedAt()).toBeUndefined();
    held.release();
    const at = await eventually('the server has counted', askedAt);
    expect(Math.abs(Date.now() / 1_000 - at)).toBeLessThan(30);
  }, env).finally(() => gate.close());
});
