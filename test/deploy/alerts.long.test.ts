import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ALERTS, ALERTS_FILE } from './alert-rules';

const folder = temporaryFolder();

const worker = (namespace: string) => `agent_follow_up_worker_info{namespace="${namespace}", instance="i"}`;
const open = (state: string) => `agent_follow_up_open_workflows{namespace="n", state="${state}"}`;
const oldestUnchanged = (phase: string) =>
  `agent_follow_up_oldest_unchanged_seconds{namespace="n", phase="${phase}"}`;
const requests = (labels: string) => `agent_follow_up_requests_total{namespace="n", ${labels}}`;
const SERIES: Readonly<Record<string, string>> = {
  sending: open('sending'),
  undecided: open('needs-decision'),
  unauthorized: open('unauthorized'),
  batch: open('batch'),
  sends: requests('operation="send"'),
  jobReads: requests('operation="read", result="job"'),
  rejectedReads: requests('operation="read", result="http_401"'),
  failedReads: requests('operation="read", result="http_503"'),
  unknown: 'agent_follow_up_deliveries_total{namespace="n", verdict="unknown"}',
  maxFailuresExceeded: 'agent_follow_up_batches_ended_total{namespace="n", outcome="MaxFailuresExceeded"}',
  failedTasks: 'temporal_workflow_task_execution_failed{namespace="n", workflow_type="followUp"}',
  secretFiles: 'agent_follow_up_secret_file_problems_total{namespace="n", variable="AGENT_API_KEY_FILE"}',
  countedAt: 'agent_follow_up_open_workflows_counted_timestamp_seconds{namespace="n"}',
  slots: 'temporal_worker_task_slots_available{namespace="n", instance="i", worker_type="ActivityWorker"}',
  watching: oldestUnchanged('watching'),
  decision: oldestUnchanged('needs-decision'),
  blocked: 'agent_follow_up_unknown_status_reads_total{namespace="n", status="blocked"}',
  ...{ worker: worker('n'), workerOfA: worker('a'), workerOfB: worker('b') },
};
const [SENDS, BATCH] = ['FollowUpSendsStalled', 'FollowUpBatchStalled'] as const;
const [WATCH, STATUS] = ['FollowUpWatchStalled', 'FollowUpUnknownStatus'] as const;

/** Each series has one value per minute. Times are on the clock of the promtool test, which starts at 0. */
const CASES: [alert: string, condition: string, series: string, at: string, count: 0 | 1][] = [
  ['FollowUpAgentServiceUnreachable', 'most reads fail', 'jobReads 0+4x30; failedReads 0+6x30', '25m', 1],
  [
    'FollowUpAgentServiceUnreachable',
    'the agent service rejects most reads',
    'jobReads 0+4x30; rejectedReads 0+6x30',
    '25m',
    0,
  ],
  ['FollowUpApiKeyRejected', 'a first read was rejected', 'rejectedReads 0+0x5 1+0x20', '9m', 1],
  ['FollowUpApiKeyRejected', 'a follow-up is unauthorized', 'unauthorized 1+0x5', '3m', 1],
  ['FollowUpSecretFileUnusable', 'a key file could not be used', 'secretFiles 0+0x5 1+0x20', '9m', 1],
  ['FollowUpSecretFileUnusable', 'a key file could not be used long ago', 'secretFiles 1+0x90', '80m', 0],
  ['FollowUpDeliveryUnknown', 'a delivery has become unknown', 'unknown 0+0x5 1+0x20', '10m', 1],
  ['FollowUpDeliveryUnknown', 'a delivery became unknown long ago', 'unknown 1+0x90', '80m', 0],
  [
    'FollowUpNeedsDecision',
    'a follow-up has needed a decision for a quarter of an hour',
    'undecided 1+0x20',
    '16m',
    1,
  ],
  [WATCH, 'a watched job has had the same status for more than six hours', 'watching 0+60x400', '6h20m', 1],
  [WATCH, 'a watched job has had the same status for less than six hours', 'watching 0+60x400', '5h50m', 0],
  [WATCH, 'the job has just changed after many hours', 'watching 0+60x390 0+60x20', '6h50m', 0],
  [WATCH, 'a follow-up has needed a decision for many hours', 'decision 0+60x400', '6h30m', 0],
  [STATUS, 'a read has just returned an unknown status for the first time', 'blocked _x5 1+0x20', '7m', 1],
  [STATUS, 'an unknown status is returned again and again', 'blocked 1+1x200', '3h', 1],
  [STATUS, 'an unknown status was returned two hours ago', 'blocked _x5 1+0x150', '2h10m', 0],
  [SENDS, 'no message was sent for half an hour', 'sending 4+0x120; sends 1+0x120', '2h', 1],
  [
    SENDS,
    'two messages are sent per hour',
    'sending 4+0x120; sends 1+0x28 2+0x28 3+0x28 4+0x28 5+0x28',
    '2h',
    0,
  ],
  ['FollowUpWorkflowTasksFail', 'a first workflow task has failed', 'failedTasks _x5 1+0x20', '7m', 1],
  ['FollowUpWorkflowTasksFail', 'a workflow task failed an hour ago', 'failedTasks 1+0x60', '1h', 0],
  ['FollowUpNoWorker', 'one of two namespaces has no worker', 'workerOfA 1+0x10; workerOfB 1+0x60', '30m', 1],
  ['FollowUpTemporalUnresponsive', 'the first worker has just started', 'countedAt 0+60x10', '0m', 0],
  [
    'FollowUpTemporalUnresponsive',
    'the Temporal server has not responded for seven minutes',
    'countedAt 0+60x5 300+0x20',
    '12m',
    1,
  ],
  ['FollowUpTaskSlotsExhausted', 'no slot was free for ten minutes', 'slots 0+0x15; worker 1+0x15', '11m', 1],
  [BATCH, 'the worker started ten minutes ago', 'batch 1+0x20', '10m', 0],
  [BATCH, 'no item has ended for more than two hours', 'batch 1+0x200', '130m', 1],
  [
    'FollowUpBatchMaxFailuresExceeded',
    'a batch has exceeded maxFailures',
    'maxFailuresExceeded 0+0x5 1+0x20',
    '10m',
    1,
  ],
];

/** Runs the cases as tests of promtool, and returns its output. */
async function runPromtool(rulesFile: string, cases: typeof CASES): Promise<string> {
  const tests = cases.map(([alertname, condition, series, at, value]) => {
    // At the first start, the alert must not even be pending, because operators see pending alerts.
    const state = at === '0m' ? 'pending' : 'firing';
    const expr = `count(ALERTS{alertname="${alertname}", alertstate="${state}"}) or vector(0)`;
    return {
      name: `${alertname}: ${condition}`,
      interval: '1m',
      input_series: series.split('; ').map((each) => {
        const [name = '', ...values] = each.split(' ');
        return { series: SERIES[name], values: values.join(' ') };
      }),
      promql_expr_test: [{ expr, eval_time: at, exp_samples: [{ labels: '{}', value }] }],
    };
  });
  // promtool expects YAML, and every JSON document is also a YAML document.
  const file = path.join(folder, 'rules-test.json');
  await writeFile(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }));
  return mustRun('promtool', ['test', 'rules', file]);
}

it('every alert fires in its cases, and does not fire in the other cases', async () => {
  expect(await runPromtool(ALERTS_FILE, CASES)).toContain('SUCCESS');
  const fired = CASES.filter(([, , , , count]) => count === 1).map(([alert]) => alert);
  expect(new Set(fired)).toEqual(new Set(ALERTS.map(({ alert }) => alert)));
});

it('the variable at the top of the rule file sets after which time without a change FollowUpWatchStalled fires', async () => {
  const rules = await readFile(ALERTS_FILE, 'utf8');
  const changed = rules.replace('expr: vector(6 * 3600)', 'expr: vector(30 * 60)');
  const file = path.join(folder, 'changed-rules.yaml');
  await writeFile(file, changed);
  const output = await runPromtool(file, [
    [WATCH, 'a watched job has had the same status for 45 minutes', 'watching 0+60x60', '45m', 1],
    [WATCH, 'a watched job has had the same status for 25 minutes', 'watching 0+60x60', '25m', 0],
  ]);
  expect(output).toContain('SUCCESS');
});
