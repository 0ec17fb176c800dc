import type { JobAnswer, PollJobResult, SendCheckpoint, SendResult, Tally } from './activities';
import type { EndOfItem } from './batch';
import type { Allotment, EarlierPage, PageReport, PageTrouble } from './batch-workflows';
import { isRecord } from './json';
import { PHASES } from './result';

/*
 * Whether a value is what an activity returns or records, what a batch and its pages signal, or what a run hands to the next
 * one. An operator may complete a
 * pending activity with any value at all (`temporal activity complete`), and anybody may send a signal; a workflow that took
 * it for its own would fail its tasks for ever. Half a character of UTF-16 in a text would even end the worker (sdk-core
 * 1.24).
 */

type Check = (value: unknown) => boolean;

/** Above the bounds of every text that our activities return. */
const MAX_TEXT_CHARACTERS = 4_096;

const text: Check = (value) =>
  typeof value === 'string' && value.length <= MAX_TEXT_CHARACTERS && value.isWellFormed();
const number: Check = (value) => Number.isFinite(value);
const count: Check = (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
const boolean: Check = (value) => typeof value === 'boolean';
const time: Check = (value) => typeof value === 'number' && !Number.isNaN(new Date(value).getTime());

function orNull(check: Check): Check {
  return (value) => value === null || check(value);
}

function optional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

function listOf(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

function mapOf(check: Check): Check {
  return (value) =>
    isRecord(value) && Object.entries(value).every(([name, each]) => text(name) && check(each));
}

function oneOf(...texts: readonly string[]): Check {
  return (value) => texts.some((each) => each === value);
}

function fields(checks: Readonly<Record<string, Check>>): Check {
  return (value) => isRecord(value) && Object.entries(checks).every(([name, check]) => check(value[name]));
}

/** A record that names its kind in one of its fields. */
function kinds(by: string, each: Readonly<Record<string, Readonly<Record<string, Check>>>>): Check {
  const checks = new Map<unknown, Check>(Object.entries(each).map(([name, of]) => [name, fields(of)]));
  return (value) => isRecord(value) && (checks.get(value[by])?.(value) ?? false);
}

const job = fields({
  id: text,
  status: text,
  source: fields({ repository: orNull(text), ref: orNull(text) }),
  model: orNull(text),
  prLink: orNull(text),
  createdAt: orNull(text),
  archivedAt: orNull(text),
});

const trouble = { label: text, message: text, httpStatus: optional(number), serviceMessage: optional(text) };
const readTrouble = { ...trouble, retryAfterMs: optional(number) };
const answer = kinds('kind', { job: { job }, trouble: readTrouble });

const troubles = fields({
  last: orNull(kinds('kind', { trouble: readTrouble })),
  count: number,
  notFound: orNull(fields({ count: number, since: time })),
});

const tally = fields({
  polls: number,
  observed: mapOf(number),
  trouble: troubles,
  lastAnswer: orNull(text),
  nextReadAt: orNull(time),
});

const outcome = kinds('verdict', {
  accepted: { job },
  rejected: trouble,
  'not-sent': { ...trouble, repeatable: boolean, answered: boolean, retryAfterMs: optional(number) },
  unknown: trouble,
});

const sendResult = kinds('kind', {
  unread: { trouble: kinds('kind', { trouble: readTrouble }) },
  'held-back': { job },
  'not-permitted': { message: text },
  reset: { ...trouble, baseline: orNull(job) },
  posted: { baseline: orNull(job), sentAt: time, outcome },
});

const sendCheckpoint = fields({ baseline: orNull(job), sentAt: time });

const pollResult = fields({ answer: orNull(answer), askedAt: time, before: tally });

const jobState = fields({ status: text, prLink: orNull(text), archivedAt: orNull(text) });

/** What a run of a follow-up hands to the next one. */
const continued = fields({
  plan: fields({
    ...{ projectId: text, jobId: text, requestId: text, whenActive: text, onUnknownDelivery: text },
    ...{ deadlineMs: number, reconcileMs: number, settleMs: number, confirmMs: number },
    polling: fields({
      ...{ initialMs: number, growth: number, maximumMs: number, jitter: number },
      timerPolls: (value) => value === 'all' || count(value),
    }),
  }),
  settings: orNull(
    fields({ readTaskQueue: text, sendTaskQueue: text, httpTimeoutMs: number, pollLimitMs: number }),
  ),
  deadlineAt: time,
  phase: oneOf(...PHASES),
  job: orNull(job),
  baseline: orNull(jobState),
  delivery: fields({ verdict: text, confirmedBy: orNull(text), sends: count }),
  resent: boolean,
  sentAt: orNull(time),
  evidence: orNull(text),
  lastAnswer: orNull(text),
  nextPollAt: orNull(time),
  // A run continues as new in its watch only.
  watch: fields({
    observations: fields({
      baseline: orNull(jobState),
      freshFrom: time,
      seenActive: boolean,
      fresh: orNull(fields({ job: jobState, since: time, askedAt: time, answers: count })),
    }),
    since: time,
    trouble: troubles,
    last: orNull(jobState),
    steady: boolean,
    polls: count,
    observed: mapOf(count),
  }),
});

const end = {
  outcome: text,
  delivery: orNull(text),
  evidence: orNull(text),
  prLink: orNull(text),
  message: orNull(text),
};

const endOfItem = fields(end);

const endsOfItems = listOf(orNull(endOfItem));

const itemEnd = fields({
  ...end,
  workflowId: text,
  projectId: text,
  jobId: text,
  requestId: text,
  settledAt: text,
});

const earlierPage = orNull(fields({ ends: listOf(itemEnd), left: listOf(text) }));

const pageTrouble = fields({ batchIsGone: boolean, lost: listOf(text) });

const pageReport = fields({
  run: text,
  pageRun: text,
  page: count,
  after: orNull(count),
  followedBy: boolean,
  wants: count,
  places: count,
  open: count,
  counts: fields({
    settled: count,
    unknownDeliveries: count,
    byStatus: mapOf(count),
    byFailure: mapOf(count),
    byEvidence: mapOf(count),
  }),
  failures: listOf(fields({ workflowId: text, outcome: text, message: orNull(text) })),
  done: boolean,
});

const allotment = fields({
  places: count,
  tolerated: orNull(count),
  mode: oneOf('run', 'drain', 'leave', 'cancel'),
});

export const isContinuedState = (value: unknown): boolean => continued(value);
export const isSendResult = (value: unknown): value is SendResult => sendResult(value);
export const isSendCheckpoint = (value: unknown): value is SendCheckpoint => sendCheckpoint(value);
export const isJobAnswer = (value: unknown): value is JobAnswer => answer(value);
export const isTally = (value: unknown): value is Tally => tally(value);
export const isPollJobResult = (value: unknown): value is PollJobResult => pollResult(value);
export const isEarlierPage = (value: unknown): value is EarlierPage | null => earlierPage(value);
export const isPageTrouble = (value: unknown): value is PageTrouble => pageTrouble(value);
export const isEndOfItem = (value: unknown): value is EndOfItem => endOfItem(value);
export const areEndsOfItems = (value: unknown): value is (EndOfItem | null)[] => endsOfItems(value);
export const isPageReport = (value: unknown): value is PageReport => pageReport(value);
export const isAllotment = (value: unknown): value is Allotment => allotment(value);
