import { OUTCOMES } from './outcome';
import { TERMINAL_STATUSES } from './job';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from './names';
import { EVIDENCES, FAILURE_TYPES, VERDICTS } from './result';

const OPERATIONS = ['read', 'send'] as const;

/** In the words of `responseCounts`. Another status counts with its hundred, every other failure as `other`. */
const RESULTS: readonly string[] = (
  'job,http_3xx,http_400,http_401,http_403,http_404,http_409,http_423,http_429,http_4xx,http_500,http_502,http_503,' +
  'http_504,http_5xx,not_a_job,another_job,too_large,timeout,connect_timeout,ECONNREFUSED,ECONNRESET,ENOTFOUND,' +
  'EAI_AGAIN,no_key,held_back,other'
).split(',');

const OPEN_STATES = ['any', 'sending', 'needs-decision', 'unauthorized', 'batch'] as const;
export type OpenState = (typeof OPEN_STATES)[number];

type Labels = Readonly<Record<string, readonly string[] | null>>;

/** @param by a workflow, the activities that ask the agent service, or the worker */
function row<const K extends string>(kind: K) {
  return <const L extends Labels>(
    name: string,
    recordedBy: string,
    labels: L,
    meaning: string,
    buckets?: number[],
  ) => ({ name: `agent_follow_up_${name}`, kind, recordedBy: recordedBy, labels, meaning, buckets }) as const;
}
const [counter, gauge, histogram] = [row('counter'), row('gauge'), row('histogram')];

/** A label has its values, or null for one text that a process does not change; none names a project, a job or a workflow. */
export const METRICS = {
  workerInfo: gauge(
    'worker_info',
    'worker',
    { version: null, namespace: null },
    'always 1, from when the worker is connected to Temporal; its version, and the namespace that it works for',
  ),
  requests: counter(
    'requests_total',
    'activities',
    { operation: OPERATIONS, result: RESULTS },
    'requests to the agent service, by the response or by the reason why no request was made; `job` is a response with the job',
  ),
  requestDuration: histogram(
    'request_duration_seconds',
    'activities',
    { operation: OPERATIONS },
    'the time of one request, from connecting to the last byte or to the failure',
    // Up to the default timeout of 30 s, and up to the longest timeout.
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600],
  ),
  deliveries: counter(
    'deliveries_total',
    FOLLOW_UP_WORKFLOW,
    { verdict: VERDICTS },
    'follow-ups whose delivery has its final verdict, after all reads and decisions',
  ),
  ended: counter(
    'ended_total',
    FOLLOW_UP_WORKFLOW,
    {
      outcome: [...TERMINAL_STATUSES, ...FAILURE_TYPES, 'cancelled'],
      evidence: [...EVIDENCES, 'none'],
    },
    'follow-ups that ended, by final status or failure; a terminated follow-up is not counted',
  ),
  batchesEnded: counter(
    'batches_ended_total',
    BATCH_WORKFLOW,
    { outcome: ['done', 'MaxFailuresExceeded', 'BatchIncomplete', 'cancelled'] },
    'batches that ended; a terminated or invalid batch is not counted',
  ),
  batchItemsEnded: counter(
    'batch_items_ended_total',
    BATCH_WORKFLOW,
    { outcome: OUTCOMES },
    'items of batches that ended, including items that had ended before the batch started them',
  ),
  open: gauge(
    'open_workflows',
    'worker',
    { state: OPEN_STATES },
    'open workflows of the namespace, counted by the server: follow-ups (`any`; before their send; in two phases) and ' +
      'batches. Each worker requests the counts once a minute, so use the maximum',
  ),
  openCountedAt: gauge(
    'open_workflows_counted_timestamp_seconds',
    'worker',
    {},
    'when the Temporal server last returned these counts, in seconds since 1970',
  ),
};

type MetricKey = keyof typeof METRICS;
export type LabelsOf<K extends MetricKey> = Readonly<
  Record<Extract<keyof (typeof METRICS)[K]['labels'], string>, string | null>
>;
type Recorder = (value: number, labels: Readonly<Record<string, string>>) => void;

/** As the SDK's `MetricMeter`. */
export interface Meter {
  createCounter(name: string, unit: string, help: string): { add: Recorder };
  createGauge(name: string, type: 'float', unit: string, help: string): { set: Recorder };
  createHistogram(name: string, type: 'float', unit: string, help: string): { record: Recorder };
}

/**
 * @param labels null is `none`; a value that the row does not list is `other`, for `result` with its hundred
 * @param sdkLabels for the worker: what the SDK adds by itself in activities and workflows
 */
export function recordMetric<K extends MetricKey>(
  meter: Meter,
  key: K,
  value: number,
  labels: LabelsOf<K>,
  sdkLabels: Readonly<Record<string, string>> = {},
): void {
  const { name, kind, meaning, labels: row } = METRICS[key];
  const listed: Labels = row;
  const all: Record<string, string> = { ...sdkLabels };
  for (const [label, text] of Object.entries<string | null>(labels))
    all[label] = toAllowedLabelValue(text, listed[label]);
  // For a negative one, as of a clock that was set back, the SDK throws; a workflow would stall.
  const amount = Math.max(0, value);
  // No unit is passed on: the name has it.
  if (kind === 'counter') meter.createCounter(name, '', meaning).add(amount, all);
  else if (kind === 'gauge') meter.createGauge(name, 'float', '', meaning).set(amount, all);
  else meter.createHistogram(name, 'float', '', meaning).record(amount, all);
}

/** Prometheus takes a counter that begins at 1 for no increase: each one that `by` records begins with 0, for all labels. */
export function initializeCounters(
  meter: Meter,
  recordedBy: string,
  sdkLabels: Readonly<Record<string, string>>,
): void {
  for (const { name, kind, recordedBy: recorder, labels, meaning } of Object.values(METRICS)) {
    if (kind !== 'counter' || recorder !== recordedBy) continue;
    let combinations = [sdkLabels];
    for (const [label, values] of Object.entries(labels))
      combinations = combinations.flatMap((each) => values.map((value) => ({ ...each, [label]: value })));
    const counter = meter.createCounter(name, '', meaning);
    for (const each of combinations) counter.add(0, each);
  }
}

function toAllowedLabelValue(text: string | null, values: readonly string[] | null = []): string {
  const value = text ?? 'none';
  const statusClass = value.replace(/^(http_\d)\d\d$/, '$1xx');
  return [value, statusClass].find((each) => values === null || values.includes(each)) ?? 'other';
}

/** For `histogramBucketOverrides` of the SDK's runtime. */
export function histogramBuckets(): Record<string, number[]> {
  const rows = Object.values(METRICS);
  return Object.fromEntries(rows.flatMap(({ name, buckets }) => (buckets ? [[name, buckets]] : [])));
}
