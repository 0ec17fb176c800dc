import type { ScheduleDescription } from '@temporalio/client';
import {
  BATCH_PRIORITY_KEY,
  type BatchItem,
  CONCURRENCY,
  isTolerance,
  MAX_BATCH_ID_CHARACTERS,
  MAX_SCHEDULE_BYTES,
  requestIdOf,
  type Tolerance,
} from '../../core/batch';
import { BATCH_TASK_TIMEOUT_MS, BATCH_WORKFLOW, type BatchInput } from '../../core/batch-workflows';
import { batchWorkflowId, followUpWorkflowId } from '../../core/ids';
import { isRecord, jsonBytes } from '../../core/json';
import { batchSummary } from '../../core/names';
import type { Problem } from '../../core/problem';
import { markdownCode, MAX_WORKFLOW_ID_BYTES, quote } from '../../core/text';
import type { BatchItems } from '../batch/batch-client';
import { MEMO_ITEMS_DIGEST } from '../batch/describe-batch';
import { itemsDigest } from '../batch/identity';
import { batchOfRequests, ProblemList } from '../batch/items';
import { InvalidRequestError } from '../errors';

/** What Temporal appends to the workflow id of a firing: the time that it was due, to the second, in UTC. */
const EXAMPLE_SUFFIX = '-2006-01-02T15:04:05Z';

/** Characters of a schedule's id: 79, so that the batch id of each firing has at most 100. */
const MAX_SCHEDULE_ID_CHARACTERS = MAX_BATCH_ID_CHARACTERS - EXAMPLE_SUFFIX.length;

/** Why an item of a schedule has no `requestId` of its own. */
export const NO_NAMES =
  'must not be given in a schedule: a request id is sent once, so from the second firing on, nothing would be sent';

/** How each batch of a schedule runs. */
export interface FiringOptions {
  /** How many follow-ups of a batch are open at a time, 1 to 1,000. @default 50 */
  readonly concurrency?: number | undefined;
  /** Beyond so many failures a batch starts no further item and fails. @default null, which is any number */
  readonly tolerate?: Tolerance | undefined;
  /** Where the batches run. @default the client's */
  readonly taskQueue?: string | undefined;
}

/** A batch id as a firing will have, for checks of what is made of it. */
export function exampleBatchId(scheduleId: string): string {
  return `${scheduleId}${EXAMPLE_SUFFIX}`;
}

/**
 * Checks a schedule's id: 1 to 79 letters, digits, `-`, `.`, `_`, `~`. It is part of the ids of workflows, which Temporal's
 * HTTP API can't carry with a slash in them.
 *
 * @throws InvalidRequestError
 */
export function checkScheduleId(scheduleId: string): void {
  if (/^[A-Za-z0-9._~-]+$/.test(scheduleId) && scheduleId.length <= MAX_SCHEDULE_ID_CHARACTERS) return;
  const text = `must be 1 to ${MAX_SCHEDULE_ID_CHARACTERS} letters, digits, "-", ".", "_" and "~"; it is ${quote(scheduleId)}`;
  throw new InvalidRequestError([{ field: 'scheduleId', text }]);
}

/** @throws InvalidRequestError with every problem */
export function checkFiringOptions({ concurrency, tolerate }: FiringOptions): void {
  const problems: Problem[] = [];
  const { minimum, maximum, default: usual } = CONCURRENCY;
  const places = concurrency ?? usual;
  if (!Number.isInteger(places) || places < minimum || places > maximum)
    problems.push({
      field: 'concurrency',
      text: `must be a whole number from ${minimum} to ${maximum}; it is ${quote(places)}`,
    });
  if (!isTolerance(tolerate ?? null))
    problems.push({
      field: 'tolerate',
      text: 'must be { items: N }, or { percent: P } with P from 0 to 100, or null',
    });
  if (problems.length > 0) throw new InvalidRequestError(problems);
}

/**
 * Checks what a schedule is to send.
 *
 * @throws InvalidRequestError with every item that is wrong; InvalidRequestError if they can't be those of a schedule
 */
export async function checkItems(scheduleId: string, given: BatchItems): Promise<readonly BatchItem[]> {
  const batchId = exampleBatchId(scheduleId);
  const { items } = 'digest' in given ? given : await batchOfRequests(given, batchId);
  const problems = new ProblemList('item');
  for (const [index, item] of items.entries()) {
    const { projectId, jobId } = item.request;
    const bytes = followUpWorkflowId(projectId, jobId, requestIdOf(batchId, item)).length;
    if (item.key === null) problems.add(index + 1, `requestId: ${NO_NAMES}`);
    else if (bytes > MAX_WORKFLOW_ID_BYTES)
      problems.add(
        index + 1,
        `its workflow ids would be ${bytes} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so give the schedule a shorter id`,
      );
  }
  const bytes = jsonBytes(items);
  if (bytes > MAX_SCHEDULE_BYTES)
    problems.addGeneral(
      `${(bytes / 2 ** 20).toFixed(1)} MiB as JSON, and a schedule holds ${MAX_SCHEDULE_BYTES / 2 ** 20} MiB at most; ` +
        'let cron run the starter\'s command "batch run" instead, which reads its file each time',
    );
  if (!problems.isEmpty) throw new InvalidRequestError(problems.all());
  return items;
}

/** What each firing of a schedule starts. */
export function newAction(
  scheduleId: string,
  items: readonly BatchItem[],
  { concurrency, tolerate, taskQueue }: FiringOptions & { readonly taskQueue: string },
) {
  return {
    type: 'startWorkflow' as const,
    workflowType: BATCH_WORKFLOW,
    taskQueue,
    // Temporal makes the workflow id of each firing of it and the time.
    workflowId: batchWorkflowId(scheduleId),
    args: [inputWith({}, { items, concurrency, tolerate })] as [BatchInput],
    workflowTaskTimeout: BATCH_TASK_TIMEOUT_MS,
    // The SDK's type lacks it; it is sent nevertheless.
    priority: { priorityKey: BATCH_PRIORITY_KEY },
    ...descriptionOf(scheduleId, items),
  };
}

/**
 * The action of a schedule that is changed. Everything that is not given stays as somebody has set it: time-outs, search
 * attributes, other fields of the input, …
 */
export function changedAction(
  { scheduleId, action }: ScheduleDescription,
  { taskQueue, ...input }: FiringOptions & { readonly items: readonly BatchItem[] | undefined },
) {
  const { items } = input;
  const described = items === undefined ? undefined : descriptionOf(scheduleId, items);
  return {
    ...action,
    ...described,
    taskQueue: taskQueue ?? action.taskQueue,
    // The typed ones are the same, and the SDK takes one of the two.
    searchAttributes: {},
    args: [inputWith(inputOf(action), input), ...((action.args ?? []).slice(1) as unknown[])],
    memo: { ...action.memo, ...described?.memo },
  };
}

/** The input of the batches of a schedule, whoever has changed it since. */
export function inputOf({ args }: ScheduleDescription['action']): BatchInput {
  const [argument] = (args ?? []) as unknown[];
  return isRecord(argument) ? argument : {};
}

type FiringInput = Pick<FiringOptions, 'concurrency' | 'tolerate'> & {
  readonly items?: readonly BatchItem[] | undefined;
};

function inputWith(before: BatchInput, change: FiringInput): BatchInput {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(given) };
}

function descriptionOf(scheduleId: string, items: readonly BatchItem[]) {
  return {
    memo: { [MEMO_ITEMS_DIGEST]: itemsDigest(items) },
    staticSummary: `${batchSummary(items.length)} by the schedule ${markdownCode(scheduleId)}`,
  };
}
