import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { freePorts } from '../../dev/free-ports';
import { ALERTS_FILE } from '../../scripts/prometheus-rule';
import { FOLLOW_UP_WORKFLOW } from '../../src/core/names';
import { eventually } from '../harness/eventually';
import { SWIFT } from '../harness/batch-of-test';
import { ENDLESS, queueVariables } from '../harness/following';
import { ASKS_EVERY_SECOND, PATIENT, ProcessEnvironment } from '../harness/process-environment';
import { mustRun, Program } from '../harness/program';
import { showsPhase } from '../harness/scenario';
import { temporal } from '../harness/temporal';
import { temporaryFolder } from '../harness/temporary-folder';
import { ALERTS, HURRIED, metricsIn, PANELS } from './alert-rules';
import { Prometheus } from './prometheus';

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
const serverOptions = () => {
  return { cli: temporal().cli, databaseFile: path.join(folder, 'temporal.db'), searchAttributes: true };
};

beforeAll(async () => {
  server = await startDevServer(serverOptions());
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
  prometheus = await Prometheus.start(folder, HURRIED, metrics);
});

afterAll(async () => {
  await prometheus.stop();
  await environment.close();
  await server.stop();
});

/** Removed when nothing runs in it any more. */
const folder = temporaryFolder();
const keyFile = path.join(folder, 'key');

/** A command of the starter that must succeed. */
async function starter(...args: string[]): Promise<void> {
  const env = { TEMPORAL_ADDRESS: server.address, ...queueVariables(environment.taskQueues) };
  expect(await Program.starter(args, env).ended()).toMatchObject({ code: 0 });
}

/** The runbook's request to the agent service. */
async function sandbox(method: 'POST' | 'DELETE', what: string): Promise<void> {
  const { ok } = await fetch(`${environment.sandbox.baseUrl}/sandbox/${what}`, { method });
  expect(ok).toBe(true);
}

type Clear = () => Promise<unknown>;

/** What raises each alert, and then clears it. What looks back is clear some time later: nothing waits for that. */
const CASES: Readonly<Record<string, readonly [raise: () => Promise<Clear>, 'later'?]>> = {
  FollowUpNoWorker: [() => Promise.resolve(() => environment.startWorker(workerEnv))],
  FollowUpAgentServiceUnreachable: [
    async () => {
      const following = await environment.follow(ENDLESS, WATCHED);
      await showsPhase(following, 'watching');
      environment.sandbox.setFault({ name: 'http-503' });
      return async () => {
        await sandbox('DELETE', 'faults');
        await following.handle.cancel();
      };
    },
    'later',
  ],
  FollowUpKeyRefused: [
    async () => {
      await sandbox('DELETE', 'keys');
      // The first 401 of the worker, and no follow-up stays open with it.
      const following = await environment.follow({}, WATCHED);
      expect(await following.failure()).toMatchObject({ type: 'FollowUpRejected' });
      return () => writeFile(keyFile, environment.sandbox.createKey());
    },
    'later',
  ],
  FollowUpDeliveryUnknown: [
    async () => {
      const following = await environment.follow({ status: 'active', ...ENDLESS }, SWIFT, LOST);
      expect(await following.failure()).toMatchObject({ type: 'DeliveryUnknown' });
      return async () => {
        following.clearFaults();
        const { projectId, jobId } = following.key;
        const words = ['--prompt', 'Once more.', '--request-id', 'new', '--no-wait'];
        await starter('send', '--project', projectId, '--job', jobId, ...words);
        await following.reached({ operation: 'message' }, { atLeast: 2 });
      };
    },
    'later',
  ],
  FollowUpNeedsDecision: [
    async () => {
      const asked = { ...WATCHED, ...AT_ONCE, onUnknownDelivery: 'ask' } as const;
      const following = await environment.follow({ status: 'active', ...ENDLESS }, asked, LOST);
      return () => starter('resolve', following.handle.workflowId, 'delivered');
    },
  ],
  FollowUpSendsStandStill: [
    async () => {
      await starter('limits', 'set', '--sends-total', '1/h');
      await Promise.all(Array.from({ length: 4 }, () => environment.follow({}, WATCHED)));
      return () => starter('limits', 'set', '--sends-total', 'off');
    },
  ],
  FollowUpWorkflowTasksFail: [
    async () => {
      const workflowId = `undecodable-${randomUUID()}`;
      const payload = { metadata: { encoding: Buffer.from('binary/unknown') }, data: Buffer.from('?') };
      await environment.client.workflowService.startWorkflowExecution({
        namespace: 'default',
        workflowId,
        workflowType: { name: FOLLOW_UP_WORKFLOW },
        taskQueue: { name: environment.taskQueue },
        requestId: randomUUID(),
        input: { payloads: [payload] },
      });
      const terminate = ['workflow', 'terminate', '--workflow-id', workflowId, '--address', server.address];
      return () => mustRun(temporal().cli, terminate);
    },
    'later',
  ],
  FollowUpSlotsUsedUp: [
    async () => {
      environment.sandbox.setFault({ name: 'hold', operation: 'message' });
      // The worker makes 50 sends at once.
      const many = await Promise.all(Array.from({ length: 55 }, () => environment.follow({}, WATCHED)));
      return async () => {
        await sandbox('DELETE', 'faults');
        await sandbox('POST', 'release');
        await Promise.all(many.map(({ handle }) => handle.terminate()));
      };
    },
  ],
  FollowUpBatchStandsStill: [
    async () => {
      const items = Array.from({ length: 3 }, () => ({
        ...environment.addJob(),
        prompt: 'Go on.',
        ...SWIFT,
      }));
      const { batches } = environment.followUps;
      const batch = await batches.start(items, { batchId: 'forgotten', concurrency: 1 });
      await batch.pause();
      return () => starter('batch', 'resume', 'forgotten');
    },
  ],
  FollowUpBatchBeyondTolerance: [
    async () => {
      const { batches } = environment.followUps;
      const missing = { projectId: 'docs', jobId: 'no-such-job', prompt: 'Go on.', ...SWIFT };
      const batch = await batches.start([missing], { batchId: 'failing', tolerate: { items: 0 } });
      expect((await batch.result()).state).toBe('tolerance-exceeded');
      return () => Promise.resolve();
    },
    'later',
  ],
  FollowUpTemporalSilent: [
    async () => {
      server.kill();
      await server.exited;
      const { port } = server;
      return async () => (server = await startDevServer({ ...serverOptions(), port }));
    },
  ],
};

describe('an alert fires, and the command of the runbook clears it', () => {
  const clearing: Promise<unknown>[] = [];

  it.each(Object.entries(CASES))('%s', async (alert, [raise, later]) => {
    const clear = await raise();
    const firing = async () => (await prometheus.firing()).get(alert);
    const { annotations } = await eventually(`${alert} fires`, firing, OFTEN);
    expect(annotations.summary).not.toMatch(/<|error/);
    await clear();
    const cleared = eventually(`${alert} is cleared`, async () => (await firing()) === undefined, OFTEN);
    clearing.push(cleared);
    if (later === undefined) await cleared;
  });

  it('and in the end each is cleared', async () => {
    await Promise.all(clearing);
    expect(Object.keys(CASES).sort()).toEqual(ALERTS.map(({ alert }) => alert).sort());
  });
});

describe('the rules and the dashboard', () => {
  it('are taken by promtool, and by Prometheus, and name only metrics that a worker has exported', async () => {
    const checked = await mustRun('promtool', ['check', 'rules', ALERTS_FILE]);
    expect(checked).toContain(`SUCCESS: ${ALERTS.length} rules found`);
    for (const { expr } of PANELS) {
      const query = expr.replaceAll('$__rate_interval', '10m').replaceAll('$namespace', 'default');
      expect({ expr, found: await prometheus.query(query) }).not.toEqual({ expr, found: [] });
    }
    const named = [...ALERTS, ...PANELS].flatMap(({ expr }) => metricsIn(expr));
    expect(await prometheus.names()).toEqual(expect.arrayContaining(named));
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
    const expr = `count(ALERTS{alertname="${alertname}", alertstate="${state}"}) or vector(0)`;
    const test = {
      interval: '1m',
      input_series: series.split('; ').map((each) => {
        const [name = '', ...values] = each.split(' ');
        return { series: SERIES[name], values: values.join(' ') };
      }),
      promql_expr_test: [{ expr, eval_time: at, exp_samples: [{ labels: '{}', value: count }] }],
    };
    const tests = { rule_files: [ALERTS_FILE], evaluation_interval: '1m', tests: [test] };
    // JSON is YAML.
    await writeFile(path.join(folder, 'rules-test.json'), JSON.stringify(tests));
    const tested = await mustRun('promtool', ['test', 'rules', 'rules-test.json'], { cwd: folder });
    expect(tested).toContain('SUCCESS');
  });
});
