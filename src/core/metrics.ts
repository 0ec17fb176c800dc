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

const OPEN_STATES = ['any', 'sending', 'needs-decision', 'unauthorized', 'older-than-1d', 'batch'] as const;
export type OpenState = (typeof OPEN_STATES)[number];

interface Metric {
  readonly name: `agent_follow_up_${string}`;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** The values of each; null for one text that a process does not change. */
  readonly labels: Readonly<Record<string, readonly string[] | null>>;
  /** A workflow, the activities that ask the agent service, or the worker. */
  readonly by: string;
  readonly buckets?: readonly number[];
  readonly meaning: string;
}

/** All metrics, of which docs/metrics.md is made. No label names a project, a job or a workflow. */
export const METRICS = {
  workerInfo: {
    name: 'agent_follow_up_worker_info',
    kind: 'gauge',
    labels: { version: null, namespace: null },
    by: 'worker',
    meaning:
      'always 1, from when the worker is connected to Temporal; its version, and the namespace that it works for',
  },
  exchanges: {
    name: 'agent_follow_up_exchanges_total',
    kind: 'counter',
    labels: { operation: OPERATIONS, answer: ANSWERS },
    by: 'activities',
    meaning:
      'exchanges with the agent service, by what came back or kept them from being made; `job` is a good answer',
  },
  exchangeSeconds: {
    name: 'agent_follow_up_exchange_seconds',
    kind: 'histogram',
    labels: { operation: OPERATIONS },
    by: 'activities',
    // To the default time limit of 30 s, and to the largest one of 10 min.
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600],
    meaning: 'how long an exchange took, from connecting to the last byte or to its failure',
  },
  cooldown: {
    name: 'agent_follow_up_cooldown_seconds_total',
    kind: 'counter',
    labels: {},
    by: 'activities',
    meaning:
      'for how long the service wanted no request for a project (429, `Retry-After`), all projects together; counted when ' +
      'a cool-down begins',
  },
  readLateness: {
    name: 'agent_follow_up_read_lateness_seconds',
    kind: 'histogram',
    labels: {},
    by: 'activities',
    buckets: [0.1, 0.5, 1, 5, 15, 60, 300, 1_800],
    meaning: 'how much later than planned a read began: behind a limit, or for want of workers',
  },
  pollsWaiting: {
    name: 'agent_follow_up_polls_waiting',
    kind: 'gauge',
    labels: {},
    by: 'activities',
    meaning: 'polls that wait in the process between two reads',
  },
  pollsWaitingLimit: {
    name: 'agent_follow_up_polls_waiting_limit',
    kind: 'gauge',
    labels: {},
    by: 'activities',
    meaning: 'how many polls may wait in the process; the server keeps the waits of the others',
  },
  deliveries: {
    name: 'agent_follow_up_deliveries_total',
    kind: 'counter',
    labels: { verdict: VERDICTS },
    by: FOLLOW_UP_WORKFLOW,
    meaning: 'follow-ups whose delivery has its last verdict, after reading and decisions',
  },
  ends: {
    name: 'agent_follow_up_ends_total',
    kind: 'counter',
    by: FOLLOW_UP_WORKFLOW,
    labels: {
      outcome: [...TERMINAL_STATUSES, ...FAILURE_TYPES, 'cancelled'],
      evidence: [...EVIDENCES, 'none'],
    },
    meaning: 'ends of follow-ups, by final status or failure; a terminated one has no end here',
  },
  batchEnds: {
    name: 'agent_follow_up_batch_ends_total',
    kind: 'counter',
    by: BATCH_WORKFLOW,
    labels: { outcome: ['done', 'ToleranceExceeded', 'BatchIncomplete', 'cancelled'] },
    meaning: 'ends of batches; a terminated or invalid one has no end here',
  },
  batchItems: {
    name: 'agent_follow_up_batch_items_total',
    kind: 'counter',
    labels: { outcome: OUTCOMES },
    by: BATCH_WORKFLOW,
    meaning: 'ends of items of batches, those included that a batch finds ended',
  },
  open: {
    name: 'agent_follow_up_open_workflows',
    kind: 'gauge',
    labels: { state: OPEN_STATES },
    by: 'worker',
    meaning:
      'open workflows of the namespace, counted by the server: follow-ups (`any`; before their send; in two phases; older than a ' +
      'day) and batches. Each worker asks once a minute, so take the maximum',
  },
  openAskedAt: {
    name: 'agent_follow_up_open_asked_timestamp_seconds',
    kind: 'gauge',
    labels: {},
    by: 'worker',
    meaning: 'when the server last answered these questions, in seconds since 1970',
  },
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricKey = keyof typeof METRICS;
export type LabelsOf<K extends MetricKey> = Readonly<
  Record<Extract<keyof (typeof METRICS)[K]['labels'], string>, string | null>
>;
type Recorder = (value: number, labels: Readonly<Record<string, string>>) => void;

/** Of the SDK's `MetricMeter`: workflows, activities and the worker have one each. */
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
  const { name, kind, meaning, labels: known }: Metric = METRICS[key];
  const all: Record<string, string> = { ...sdkLabels };
  for (const [label, text] of Object.entries<string | null>(labels)) all[label] = inSet(text, known[label]);
  // A clock that was set back makes it negative, for which the SDK throws; a workflow would stall.
  const amount = Math.max(0, value);
  // No unit is passed on: the name has it.
  if (kind === 'counter') meter.createCounter(name, '', meaning).add(amount, all);
  else if (kind === 'gauge') meter.createGauge(name, 'float', '', meaning).set(amount, all);
  else meter.createHistogram(name, 'float', '', meaning).record(amount, all);
}

/** Begins every counter that `by` records with 0, for all labels: Prometheus takes one that begins at 1 for no increase. */
export function beginCounters(meter: Meter, by: string, sdkLabels: Readonly<Record<string, string>>): void {
  for (const { name, kind, by: recorder, labels, meaning } of Object.values<Metric>(METRICS)) {
    if (kind !== 'counter' || recorder !== by) continue;
    let combinations = [sdkLabels];
    for (const [label, values] of Object.entries(labels))
      combinations = combinations.flatMap((each) =>
        (values ?? []).map((value) => ({ ...each, [label]: value })),
      );
    const counter = meter.createCounter(name, '', meaning);
    for (const each of combinations) counter.add(0, each);
  }
}

function inSet(text: string | null, known: readonly string[] | null = []): string {
  const value = text ?? 'none';
  const hundred = value.replace(/^(http \d)\d\d$/, '$1xx');
  return [value, hundred].find((each) => known === null || known.includes(each)) ?? 'other';
}

/** For `histogramBucketOverrides` of the SDK's runtime. */
export function histogramBuckets(): Record<string, number[]> {
  const rows = Object.values<Metric>(METRICS);
  return Object.fromEntries(rows.flatMap(({ name, buckets }) => (buckets ? [[name, [...buckets]]] : [])));
}
