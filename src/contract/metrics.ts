import { OUTCOMES } from './outcome';
import { TERMINAL_STATUSES } from './job';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW } from './names';
import { EVIDENCES, FAILURE_TYPES, OPEN_PHASES, VERDICTS } from './result';

const OPERATIONS = ['read', 'send'] as const;

/**
 * The values of the label `result`. `job` is a readable response, and the other values are failure labels. An HTTP status that is
 * not listed counts as its class, for example `http_5xx`. A TLS error counts as `tls_error`. Every other failure counts as `other`.
 */
const RESULTS: readonly string[] = (
  'job,http_3xx,http_400,http_401,http_403,http_404,http_409,http_423,http_429,http_4xx,http_500,http_502,http_503,' +
  'http_504,http_5xx,not_a_job,another_job,too_large,bad_encoding,timeout,connect_timeout,ECONNREFUSED,ECONNRESET,' +
  'connection_closed,EHOSTUNREACH,ENETUNREACH,ETIMEDOUT,ENOTFOUND,EAI_AGAIN,tls_error,invalid_http,PROXY_ERROR,' +
  'PROXY_CREDENTIALS,no_key,held_back,other'
).split(',');

const OPEN_STATES = ['any', 'sending', 'needs-decision', 'unauthorized', 'batch'] as const;
export type OpenState = (typeof OPEN_STATES)[number];

/** The possible values of a label whose values are not known in advance: the first `maxWords` words of a process, and `other`. */
interface Words {
  readonly maxWords: number;
}
export type MetricLabel = readonly string[] | Words | null;
type Labels = Readonly<Record<string, MetricLabel>>;

/** @param recordedBy a workflow type, `activities` (the activities that send requests to the agent service), or `worker` */
function row<const K extends string>(kind: K) {
  return <const L extends Labels>(
    name: string,
    recordedBy: string,
    labels: L,
    meaning: string,
    buckets?: number[],
  ) => ({ name: `agent_follow_up_${name}`, kind, recordedBy, labels, meaning, buckets }) as const;
}
const [counter, gauge, histogram] = [row('counter'), row('gauge'), row('histogram')];

/**
 * The metrics of the worker. Each label has a list of its possible values, a maximum number of words, or null if the label's value
 * is constant in a process. No label has the ID of a project, a job or a workflow, because each ID would add time series.
 */
export const METRICS = {
  workerInfo: gauge(
    'worker_info',
    'worker',
    { version: null, namespace: null },
    'The value is always 1. The metric exists as soon as the worker is connected to the Temporal server.',
  ),
  requests: counter(
    'requests_total',
    'activities',
    { operation: OPERATIONS, result: RESULTS },
    'HTTP requests to the agent service, by result. A request that could not be made counts too.',
  ),
  requestDuration: histogram(
    'request_duration_seconds',
    'activities',
    { operation: OPERATIONS },
    'The duration of one HTTP request, from connecting to the last byte or to the failure.',
    // The bucket of 30 s is the default timeout, and the bucket of 600 s is the longest timeout.
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600],
  ),
  unknownStatusReads: counter(
    'unknown_status_reads_total',
    'activities',
    { status: { maxWords: 20 } },
    'Reads that returned a job with a status that this version does not know, by status. Such a status does not end a follow-up.',
  ),
  deliveries: counter(
    'deliveries_total',
    FOLLOW_UP_WORKFLOW,
    { verdict: VERDICTS },
    'Follow-ups with a final verdict, after all reads and decisions. An invalid request is not counted.',
  ),
  ended: counter(
    'ended_total',
    FOLLOW_UP_WORKFLOW,
    {
      outcome: [...TERMINAL_STATUSES, ...FAILURE_TYPES, 'cancelled'],
      evidence: [...EVIDENCES, 'none'],
    },
    'Follow-ups that ended, by outcome and evidence. A follow-up that was terminated or timed out is not counted.',
  ),
  batchesEnded: counter(
    'batches_ended_total',
    BATCH_WORKFLOW,
    { outcome: ['done', 'MaxFailuresExceeded', 'BatchIncomplete', 'cancelled'] },
    'Batches that ended, by outcome. A batch that was terminated or is invalid is not counted.',
  ),
  batchItemsEnded: counter(
    'batch_items_ended_total',
    BATCH_WORKFLOW,
    { outcome: OUTCOMES },
    'Batch items that ended, by outcome. An item whose follow-up had ended before the batch reached it counts too.',
  ),
  secretFileProblems: counter(
    'secret_file_problems_total',
    'worker',
    { variable: ['AGENT_API_KEY_FILE', 'FOLLOW_UP_NOTIFY_SECRET_FILE'] },
    'Changes of a secret file after which the file could not be used. The worker continues with the last valid secret.',
  ),
  open: gauge(
    'open_workflows',
    'worker',
    { state: OPEN_STATES },
    'Running workflows of the namespace, by state. Each worker requests these counts from the Temporal server once a minute, ' +
      'so use the maximum of all workers.',
  ),
  openCountedAt: gauge(
    'open_workflows_counted_timestamp_seconds',
    'worker',
    {},
    'The time when the Temporal server last returned the counts of running workflows, in seconds since 1970.',
  ),
  oldestUnchanged: gauge(
    'oldest_unchanged_seconds',
    'worker',
    { phase: OPEN_PHASES },
    'The time since the last change of the open follow-up that has not changed for the longest time, by phase. A change is a new ' +
      'phase, or a new status of the job. The value is 0 without an open follow-up, and if the Temporal server does not return the time (the worker logs a warning). Each worker measures this time every five ' +
      'minutes, so use the maximum of all workers.',
  ),
};

type MetricKey = keyof typeof METRICS;
export type LabelsOf<K extends MetricKey> = Readonly<
  Record<Extract<keyof (typeof METRICS)[K]['labels'], string>, string | null>
>;
type Recorder = (value: number, labels: Readonly<Record<string, string>>) => void;

/** The part of the SDK's `MetricMeter` that this file uses. */
export interface Meter {
  createCounter(name: string, unit: string, help: string): { add: Recorder };
  createGauge(name: string, type: 'float', unit: string, help: string): { set: Recorder };
  createHistogram(name: string, type: 'float', unit: string, help: string): { record: Recorder };
}

/**
 * Records one value of a metric.
 *
 * @param labels the values of the labels. Null becomes `none`, and a value that the row does not list becomes `other`. An HTTP
 * status that is not listed becomes its class. If the row has a maximum number of words, further words of this process become
 * `other`.
 * @param sdkLabels the SDK's own labels. The SDK adds these labels only in activities and workflows, so a metric of the worker
 * needs them here.
 */
export function recordMetric<K extends MetricKey>(
  meter: Meter,
  key: K,
  value: number,
  labels: LabelsOf<K>,
  sdkLabels: Readonly<Record<string, string>> = {},
): void {
  const { name, kind, meaning, labels: allowed } = METRICS[key];
  const listed: Labels = allowed;
  const all: Record<string, string> = { ...sdkLabels };
  for (const [label, text] of Object.entries<string | null>(labels)) {
    const values = listed[label] ?? null;
    all[label] =
      values !== null && 'maxWords' in values
        ? toCountedWord(`${name} ${label}`, text ?? 'none', values)
        : toAllowedLabelValue(text, values);
  }
  // The SDK throws an error for a negative value, for example after a clock was set back. The workflow task would then fail.
  const amount = Math.max(0, value);
  // The unit is not passed to the SDK, because the name contains the unit.
  if (kind === 'counter') meter.createCounter(name, '', meaning).add(amount, all);
  else if (kind === 'gauge') meter.createGauge(name, 'float', '', meaning).set(amount, all);
  else meter.createHistogram(name, 'float', '', meaning).record(amount, all);
}

/**
 * Records 0 in each counter of one recorder, for every combination of labels. Otherwise, the first value of a counter would be 1,
 * and Prometheus would see no increase. Words that are not known in advance are an exception, and only `other` starts at 0.
 */
export function initializeCounters(
  meter: Meter,
  recordedBy: string,
  sdkLabels: Readonly<Record<string, string>>,
): void {
  for (const { name, kind, recordedBy: recorder, labels, meaning } of Object.values(METRICS)) {
    if (kind !== 'counter' || recorder !== recordedBy) continue;
    let combinations = [sdkLabels];
    for (const [label, listed] of Object.entries<readonly string[] | Words>(labels)) {
      const values = 'maxWords' in listed ? ['other'] : listed;
      combinations = combinations.flatMap((each) => values.map((value) => ({ ...each, [label]: value })));
    }
    const counter = meter.createCounter(name, '', meaning);
    for (const each of combinations) counter.add(0, each);
  }
}

/** The words that this process has recorded, by the metric and its label. */
const countedWords = new Map<string, Set<string>>();

/** Returns the word, or `other` if the process has already recorded the maximum number of other words for this label. */
function toCountedWord(label: string, word: string, { maxWords }: Words): string {
  const words = countedWords.get(label) ?? new Set();
  countedWords.set(label, words);
  if (words.size < maxWords) words.add(word);
  return words.has(word) ? word : 'other';
}

/** Matches the codes of Node's TLS and certificate errors. */
export const TLS_CODE = /^(ERR_(TLS|SSL)_\w+|EPROTO|UNABLE_TO_\w+|\w*CERT\w*)$/;

function toAllowedLabelValue(text: string | null, values: readonly string[] | null): string {
  const value = text ?? 'none';
  const valueClass = TLS_CODE.test(value) ? 'tls_error' : value.replace(/^(http_\d)\d\d$/, '$1xx');
  return [value, valueClass].find((each) => values === null || values.includes(each)) ?? 'other';
}

/** @returns the value of `histogramBucketOverrides` for the SDK's runtime */
export function histogramBuckets(): Record<string, number[]> {
  const rows = Object.values(METRICS);
  return Object.fromEntries(rows.flatMap(({ name, buckets }) => (buckets ? [[name, buckets]] : [])));
}
