import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import dashboard from '../../deploy/grafana/follow-ups.json';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { freePorts } from '../../dev/free-ports';
import { ALERTS_FILE } from '../../scripts/prometheus-rule';
import { FOLLOW_UP_WORKFLOW } from '../../src/core/names';
import { alertsIn, hurried, metricsIn, panelExpressions } from '../harness/alert-rules';
import { eventually } from '../harness/eventually';
import { SWIFT } from '../harness/batch-of-test';
import { ENDLESS, queueVariables } from '../harness/following';
import { ASKS_EVERY_SECOND, PATIENT, ProcessEnvironment } from '../harness/process-environment';
import { Prometheus } from '../harness/prometheus';
import { showsPhase } from '../harness/scenario';
import { StarterProcess } from '../harness/starter-process';
import { temporal } from '../harness/temporal';
import { temporaryFolder } from '../harness/temporary-folder';

const OFTEN = { intervalMs: 200 };
/** A follow-up that is read every half second. */
const WATCHED = { ...PATIENT, deadline: '20m' } as const;
/** The POST arrives, and its answer is lost. */
const LOST = { name: 'processed-then-close', operation: 'message' } as const;
const AT_ONCE = { reconcile: '200ms', confirm: '200ms' } as const;

/** What stands in production: a server, an agent service, a worker with its metrics, and Prometheus with the alerts. */
let server: DevServer;
let environment: ProcessEnvironment;
let prometheus: Prometheus;
let workerEnv: NodeJS.ProcessEnv;
let serverOptions: Parameters<typeof startDevServer>[0];

beforeAll(async () => {
  const databaseFile = path.join(folder, 'temporal.db');
  serverOptions = { cli: temporal().cli, databaseFile, searchAttributes: true };
  server = await startDevServer(serverOptions);
  serverOptions = { ...serverOptions, port: server.port };
  environment = await ProcessEnvironment.open({
    address: server.address,
    sandbox: { messagesPerHour: null },
    env: { AGENT_API_KEY: '', AGENT_API_KEY_FILE: keyFile },
  });
  await writeFile(keyFile, environment.sandbox.apiKey);
  const [port = 0] = await freePorts(1);
  const metrics = `127.0.0.1:${port}`;
  // A request that is held does not run out of time.
  workerEnv = { ...ASKS_EVERY_SECOND, FOLLOW_UP_METRICS_ADDRESS: metrics, AGENT_API_TIMEOUT: '5m' };
  prometheus = await Prometheus.start(folder, hurried(await readFile(ALERTS_FILE, 'utf8')), metrics);
});

afterAll(async () => {
  await prometheus.stop();
  await environment.close();
  await server.stop();
});

/** Removed when nothing runs in it any more. */
const folder = temporaryFolder();
const keyFile = path.join(folder, 'key');

const tested: string[] = [];

async function expectFiring(alert: string): Promise<void> {
  tested.push(alert);
  const firing = async () => (await prometheus.firing()).get(alert);
  const { annotations } = await eventually(`${alert} fires`, firing, OFTEN);
  expect(annotations.summary).not.toMatch(/<|error/);
}

async function expectCleared(alert: string): Promise<void> {
  const gone = async () => !(await prometheus.firing()).has(alert);
  await eventually(`${alert} is cleared`, gone, OFTEN);
}

/** What looks back at failures ends some time after the last one; the next alert need not wait for that. */
const clearing: Promise<void>[] = [];
function expectClearedLater(alert: string): void {
  clearing.push(expectCleared(alert));
}

/** A command of the starter that must succeed. */
async function starter(...args: string[]): Promise<void> {
  const env = { TEMPORAL_ADDRESS: server.address, ...queueVariables(environment.taskQueues) };
  expect(await StarterProcess.start(args, env).ended()).toMatchObject({ code: 0 });
}

async function sandbox(method: 'POST' | 'DELETE', what: string): Promise<void> {
  const { ok } = await fetch(`${environment.sandbox.baseUrl}/sandbox/${what}`, { method });
  expect(ok).toBe(true);
}

describe('an alert fires, and the command of the runbook clears it', () => {
  it('FollowUpNoWorker', async () => {
    await expectFiring('FollowUpNoWorker');
    await environment.startWorker(workerEnv);
    await expectCleared('FollowUpNoWorker');
  });

  it('FollowUpAgentServiceUnreachable', async () => {
    const following = await environment.follow(ENDLESS, WATCHED);
    await showsPhase(following, 'watching');
    environment.sandbox.setFault({ name: 'http-503' });
    await expectFiring('FollowUpAgentServiceUnreachable');
    await sandbox('DELETE', 'faults');
    expectClearedLater('FollowUpAgentServiceUnreachable');
    await following.handle.cancel();
  });

  it('FollowUpKeyRefused', async () => {
    await sandbox('DELETE', 'keys');
    // The first 401 of the worker, and no follow-up stays open with it.
    const following = await environment.follow({}, WATCHED);
    expect(await following.failure()).toMatchObject({ type: 'FollowUpRejected' });
    await expectFiring('FollowUpKeyRefused');
    await writeFile(keyFile, environment.sandbox.createKey());
    expectClearedLater('FollowUpKeyRefused');
  });

  it('FollowUpDeliveryUnknown', async () => {
    const following = await environment.follow({ status: 'active', ...ENDLESS }, SWIFT, LOST);
    expect(await following.failure()).toMatchObject({ type: 'DeliveryUnknown' });
    await expectFiring('FollowUpDeliveryUnknown');
    following.clearFaults();
    const { projectId, jobId } = following.key;
    const words = ['--prompt', 'Once more.', '--request-id', 'new', '--no-wait'];
    await starter('send', '--project', projectId, '--job', jobId, ...words);
    await following.reached({ operation: 'message' }, { atLeast: 2 });
    expectClearedLater('FollowUpDeliveryUnknown');
  });

  it('FollowUpNeedsDecision', async () => {
    const asked = { ...WATCHED, ...AT_ONCE, onUnknownDelivery: 'ask' } as const;
    const following = await environment.follow({ status: 'active', ...ENDLESS }, asked, LOST);
    await expectFiring('FollowUpNeedsDecision');
    await starter('resolve', following.handle.workflowId, 'delivered');
    await expectCleared('FollowUpNeedsDecision');
    await following.handle.cancel();
  });

  it('FollowUpSendsStandStill', async () => {
    await starter('limits', 'set', '--sends-total', '1/h');
    await Promise.all(Array.from({ length: 4 }, () => environment.follow({}, WATCHED)));
    await expectFiring('FollowUpSendsStandStill');
    await starter('limits', 'set', '--sends-total', 'off');
    await expectCleared('FollowUpSendsStandStill');
  });

  it('FollowUpWorkflowTasksFail', async () => {
    const workflowId = `undecodable-${randomUUID()}`;
    await environment.client.workflowService.startWorkflowExecution({
      namespace: 'default',
      workflowId,
      workflowType: { name: FOLLOW_UP_WORKFLOW },
      taskQueue: { name: environment.taskQueue },
      requestId: randomUUID(),
      input: {
        payloads: [{ metadata: { encoding: Buffer.from('binary/unknown') }, data: Buffer.from('?') }],
      },
    });
    await expectFiring('FollowUpWorkflowTasksFail');
    const terminate = ['workflow', 'terminate', '--workflow-id', workflowId, '--address', server.address];
    await promisify(execFile)(temporal().cli, terminate);
    expectClearedLater('FollowUpWorkflowTasksFail');
  });

  it('FollowUpSlotsUsedUp', async () => {
    environment.sandbox.setFault({ name: 'hold', operation: 'message' });
    // The worker makes 50 sends at once.
    const many = await Promise.all(Array.from({ length: 55 }, () => environment.follow({}, WATCHED)));
    await expectFiring('FollowUpSlotsUsedUp');
    await sandbox('DELETE', 'faults');
    await sandbox('POST', 'release');
    await expectCleared('FollowUpSlotsUsedUp');
    await Promise.all(many.map(({ handle }) => handle.terminate()));
  });

  it('FollowUpBatchStandsStill', async () => {
    const { batches } = environment.followUps;
    const items = Array.from({ length: 3 }, () => ({ ...environment.addJob(), prompt: 'Go on.', ...SWIFT }));
    const batch = await batches.start(items, { batchId: 'forgotten', concurrency: 1 });
    await batch.pause();
    await expectFiring('FollowUpBatchStandsStill');
    await starter('batch', 'resume', 'forgotten');
    await expectCleared('FollowUpBatchStandsStill');
    expect((await batch.result()).summary).toMatchObject({ settled: 3 });
  });

  it('FollowUpBatchBeyondTolerance', async () => {
    const { batches } = environment.followUps;
    const missing = { projectId: 'docs', jobId: 'no-such-job', prompt: 'Go on.', ...SWIFT };
    const batch = await batches.start([missing], { batchId: 'failing', tolerate: { items: 0 } });
    expect((await batch.result()).state).toBe('tolerance-exceeded');
    await expectFiring('FollowUpBatchBeyondTolerance');
    expectClearedLater('FollowUpBatchBeyondTolerance');
  });

  it('FollowUpTemporalSilent', async () => {
    server.kill();
    await server.exited;
    await expectFiring('FollowUpTemporalSilent');
    server = await startDevServer(serverOptions);
    await expectCleared('FollowUpTemporalSilent');
  });

  it('and in the end each is cleared', async () => {
    await Promise.all(clearing);
    expect(clearing).toHaveLength(5);
  });
});

describe('the rules and the dashboard', () => {
  it('are taken by promtool, and by Prometheus', async () => {
    const { stdout } = await promisify(execFile)('promtool', ['check', 'rules', ALERTS_FILE]);
    const alerts = alertsIn(await readFile(ALERTS_FILE, 'utf8'));
    expect(stdout).toContain(`SUCCESS: ${alerts.length} rules found`);
    for (const { expression } of panelExpressions(dashboard)) {
      const found = await prometheus.query(
        expression.replaceAll('$__rate_interval', '10m').replaceAll('$namespace', 'default'),
      );
      expect({ expression, isEmpty: found.length === 0 }).toEqual({ expression, isEmpty: false });
    }
  });

  const worker = (namespace: string) => `agent_follow_up_worker_info{namespace="${namespace}", instance="i"}`;
  const SERIES: Readonly<Record<string, string>> = {
    sending: 'agent_follow_up_open_workflows{namespace="n", state="sending"}',
    batch: 'agent_follow_up_open_workflows{namespace="n", state="batch"}',
    sends: 'agent_follow_up_exchanges_total{namespace="n", operation="send"}',
    refused: 'agent_follow_up_exchanges_total{namespace="n", operation="read", answer="http 401"}',
    taskFails: 'temporal_workflow_task_execution_failed{namespace="n", workflow_type="followUp"}',
    asked: 'agent_follow_up_open_asked_timestamp_seconds{namespace="n"}',
    slots: 'temporal_worker_task_slots_available{namespace="n", instance="i", worker_type="ActivityWorker"}',
    ...{ worker: worker('n'), workerOfA: worker('a'), workerOfB: worker('b') },
  };
  const [SENDS, BATCH] = ['FollowUpSendsStandStill', 'FollowUpBatchStandsStill'] as const;
  const STARTED = 'the worker has started ten minutes ago';
  /** By Prometheus's own clock, with a value a minute in each series. */
  it.each<[string, string, string, string, 0 | 1]>([
    [SENDS, 'nothing was sent for half an hour', 'sending 4+0x120; sends 1+0x120', '2h', 1],
    [SENDS, 'two are sent an hour', 'sending 4+0x120; sends 1+0x28 2+0x28 3+0x28 4+0x28 5+0x28', '2h', 0],
    [SENDS, STARTED, 'sending 4+0x20; sends 0+0x20', '10m', 0],
    [BATCH, STARTED, 'batch 1+0x20', '10m', 0],
    [BATCH, 'no item has ended for more than two hours', 'batch 1+0x200', '130m', 1],
    ['FollowUpNoWorker', 'one of two namespaces has none', 'workerOfA 1+0x10; workerOfB 1+0x60', '30m', 1],
    ['FollowUpNoWorker', 'each namespace has one', 'workerOfA 1+0x60; workerOfB 1+0x60', '30m', 0],
    ['FollowUpTemporalSilent', 'the first worker has just started', 'asked 0+60x10', '0m', 0],
    ['FollowUpTemporalSilent', 'it has not answered for seven minutes', 'asked 0+60x5 300+0x20', '12m', 1],
    ['FollowUpSlotsUsedUp', 'none is free for two minutes', 'slots 0+0x5; worker 1+0x5', '2m', 0],
    ['FollowUpWorkflowTasksFail', 'a first task has failed', 'taskFails _x5 1+0x20', '7m', 1],
    ['FollowUpWorkflowTasksFail', 'a task has failed an hour ago', 'taskFails 1+0x60', '1h', 0],
    ['FollowUpKeyRefused', 'a first read is refused', 'refused 0+0x5 1+0x20', '9m', 1],
  ])('%s where %s', async (alertname, _, series, at, count) => {
    // Pending would do harm at a first start only: it is shown to people.
    const state = at === '0m' ? 'pending' : 'firing';
    const test = {
      interval: '1m',
      input_series: series.split('; ').map((each) => {
        const [name = '', ...values] = each.split(' ');
        return { series: SERIES[name], values: values.join(' ') };
      }),
      promql_expr_test: [
        {
          expr: `count(ALERTS{alertname="${alertname}", alertstate="${state}"}) or vector(0)`,
          eval_time: at,
          exp_samples: [{ labels: '{}', value: count }],
        },
      ],
    };
    const file = path.join(folder, 'rules-test.json');
    const tests = { rule_files: [ALERTS_FILE], evaluation_interval: '1m', tests: [test] };
    // JSON is YAML.
    await writeFile(file, JSON.stringify(tests));
    const { stdout } = await promisify(execFile)('promtool', ['test', 'rules', file]);
    expect(stdout).toContain('SUCCESS');
  });

  it('name only metrics that a worker has exported, and no alert is left out here', async () => {
    const alerts = alertsIn(await readFile(ALERTS_FILE, 'utf8'));
    const expressions = [...alerts, ...panelExpressions(dashboard)].map(({ expression }) => expression);
    expect(await prometheus.names()).toEqual(expect.arrayContaining(expressions.flatMap(metricsIn)));
    expect(tested.sort()).toEqual(alerts.map(({ name }) => name).sort());
  });
});
