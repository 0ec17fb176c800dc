import { OUTCOMES } from './end';
import { TERMINAL_STATUSES } from './job';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from './names';
import { EVIDENCES, FAILURE_TYPES, VERDICTS } from './result';

const OPERATIONS = ['read', 'send'] as const;

/** In the words of `observed`. Another status counts with its hundred, every other failure as `other`. */
const ANSWERS: readonly string[] = (
  'job,http 3xx,http 400,http 401,http 403,http 404,http 409,http 423,http 429,http 4xx,http 500,http 502,http 503,' +
  'http 504,http 5xx,not a job,another job,too large,timeout,connect timeout,ECONNREFUSED,ECONNRESET,ENOTFOUND,' +
  'EAI_AGAIN,no key,held back,other'
).split(',');

const OPEN_STATES = ['any', 'sending', 'needs-decision', 'unauthorized', 'batch'] as const;
export type OpenState = (typeof OPEN_STATES)[number];

type Labels = Readonly<Record<string, readonly string[] | null>>;

/** @param by a workflow, the activities that ask the agent service, or the worker */
function row<const K extends string>(kind: K) {
  return <const L extends Labels>(name: string, by: string, labels: L, meaning: string, buckets?: number[]) =>
    ({ name: `agent_follow_up_${name}`, kind, by, labels, meaning, buckets }) as const;
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
  exchanges: counter(
    'exchanges_total',
    'activities',
    { operation: OPERATIONS, answer: ANSWERS },
    'exchanges with the agent service, by what came back or kept them from being made; `job` is a good answer',
  ),
  exchangeSeconds: histogram(
    'exchange_seconds',
    'activities',
    { operation: OPERATIONS },
    'how long an exchange took, from connecting to the last byte or to its failure',
    // To the default time limit of 30 s, and to the largest one.
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600],
  ),
  deliveries: counter(
    'deliveries_total',
    FOLLOW_UP_WORKFLOW,
    { verdict: VERDICTS },
    'follow-ups whose delivery has its last verdict, after reading and decisions',
  ),
  ends: counter(
    'ends_total',
    FOLLOW_UP_WORKFLOW,
    {
      outcome: [...TERMINAL_STATUSES, ...FAILURE_TYPES, 'cancelled'],
      evidence: [...EVIDENCES, 'none'],
    },
    'ends of follow-ups, by final status or failure; a terminated one has no end here',
  ),
  batchEnds: counter(
    'batch_ends_total',
    BATCH_WORKFLOW,
    { outcome: ['done', 'ToleranceExceeded', 'BatchIncomplete', 'cancelled'] },
    'ends of batches; a terminated or invalid one has no end here',
  ),
  batchItems: counter(
    'batch_items_total',
    BATCH_WORKFLOW,
    { outcome: OUTCOMES },
    'ends of items of batches, those included that a batch finds ended',
  ),
  open: gauge(
    'open_workflows',
    'worker',
    { state: OPEN_STATES },
    'open workflows of the namespace, counted by the server: follow-ups (`any`; before their send; in two phases) and ' +
      'batches. Each worker asks once a minute, so take the maximum',
  ),
  openAskedAt: gauge(
    'open_asked_timestamp_seconds',
    'worker',
    {},
    'when the server last answered these questions, in seconds since 1970',
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
 * @param labels null is `none`; a value that the row does not list is `other`, for `answer` with its hundred
 * @param sdkLabels for the worker: what the SDK adds by itself in activities and workflows
 */
export function measure<K extends MetricKey>(
  meter: Meter,
  key: K,
  value: number,
  labels: LabelsOf<K>,
  sdkLabels: Readonly<Record<string, string>> = {},
): void {
  const { name, kind, meaning, labels: row } = METRICS[key];
  const listed: Labels = row;
  const all: Record<string, string> = { ...sdkLabels };
  for (const [label, text] of Object.entries<string | null>(labels)) all[label] = inSet(text, listed[label]);
  // For a negative one, as of a clock that was set back, the SDK throws; a workflow would stall.
  const amount = Math.max(0, value);
  // No unit is passed on: the name has it.
  if (kind === 'counter') meter.createCounter(name, '', meaning).add(amount, all);
  else if (kind === 'gauge') meter.createGauge(name, 'float', '', meaning).set(amount, all);
  else meter.createHistogram(name, 'float', '', meaning).record(amount, all);
}

/** Prometheus takes a counter that begins at 1 for no increase: each one that `by` records begins with 0, for all labels. */
export function beginCounters(meter: Meter, by: string, sdkLabels: Readonly<Record<string, string>>): void {
  for (const { name, kind, by: recorder, labels, meaning } of Object.values(METRICS)) {
    if (kind !== 'counter' || recorder !== by) continue;
    let combinations = [sdkLabels];
    for (const [label, values] of Object.entries(labels))
      combinations = combinations.flatMap((each) => values.map((value) => ({ ...each, [label]: value })));
    const counter = meter.createCounter(name, '', meaning);
    for (const each of combinations) counter.add(0, each);
  }
}

function inSet(text: string | null, values: readonly string[] | null = []): string {
  const value = text ?? 'none';
  const hundred = value.replace(/^(http \d)\d\d$/, '$1xx');
  return [value, hundred].find((each) => values === null || values.includes(each)) ?? 'other';
}

/** For `histogramBucketOverrides` of the SDK's runtime. */
export function histogramBuckets(): Record<string, number[]> {
  const rows = Object.values(METRICS);
  return Object.fromEntries(rows.flatMap(({ name, buckets }) => (buckets ? [[name, buckets]] : [])));
}
