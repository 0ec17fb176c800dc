import type { ScheduleDescription } from '@temporalio/client';
import {
  BATCH_PRIORITY_KEY,
  type BatchItem,
  MAX_BATCH_ID_CHARACTERS,
  MAX_SCHEDULE_BYTES,
  requestIdOf,
} from '../../core/batch/batch';
import { BATCH_TASK_TIMEOUT_MS, BATCH_WORKFLOW, type BatchInput } from '../../core/batch/workflows';
import { batchWorkflowId, followUpWorkflowId } from '../../core/ids';
import { isRecord, type Problem } from '../../core/checks';
import { jsonBytes, markdownCode, MAX_WORKFLOW_ID_BYTES, quote } from '../../core/text';
import { batchSummary } from '../../core/starts';
import type { BatchItems } from '../batch/batch-client';
import { MEMO_ITEMS_DIGEST } from '../batch/describe-batch';
import { checkBatch, isChecked, itemsDigest } from '../batch/items';
import { InvalidRequestError } from '../errors';
import type { FiringOptions } from './schedule-client';

/** What is undefined is left out, or stays as it is. */
interface Firing extends FiringOptions {
  readonly items: readonly BatchItem[] | undefined;
}

export function newAction(
  scheduleId: string,
  { taskQueue, ...input }: Firing & { readonly taskQueue: string },
) {
  return {
    type: 'startWorkflow' as const,
    workflowType: BATCH_WORKFLOW,
    taskQueue,
    // Temporal appends the time of each firing.
    workflowId: batchWorkflowId(scheduleId),
    args: [withGiven({}, input)] as [BatchInput],
    workflowTaskTimeout: BATCH_TASK_TIMEOUT_MS,
    // The SDK's type lacks it; it is sent nevertheless.
    priority: { priorityKey: BATCH_PRIORITY_KEY },
    ...itemsDescription(scheduleId, input.items),
  };
}

/** The action with a change; whatever else somebody has set stays: time-outs, search attributes, fields of the input, … */
export function changedAction(
  { scheduleId, action }: ScheduleDescription,
  { taskQueue = action.taskQueue, ...input }: Firing,
) {
  const described = itemsDescription(scheduleId, input.items);
  const [, ...furtherArgs] = (action.args ?? []) as unknown[];
  return {
    ...action,
    ...described,
    taskQueue,
    // The typed ones are the same, and the SDK takes one of the two.
    searchAttributes: {},
    args: [withGiven(batchInputOf(action), input), ...furtherArgs],
    memo: { ...action.memo, ...described.memo },
  };
}

/** The input of the batches of a schedule, whoever has changed it since. */
export function batchInputOf({ args }: ScheduleDescription['action']): BatchInput {
  const [argument] = (args ?? []) as unknown[];
  return isRecord(argument) ? argument : {};
}

function itemsDescription(scheduleId: string, items: readonly BatchItem[] | undefined) {
  if (items === undefined) return {};
  return {
    memo: { [MEMO_ITEMS_DIGEST]: itemsDigest(items) },
    staticSummary: `${batchSummary(items.length)} by the schedule ${markdownCode(scheduleId)}`,
  };
}

/** An object with those fields of another one that are not undefined. */
export function withGiven<Fields extends object>(before: Fields, change: object): Fields {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(given) };
}

/** What Temporal appends to the workflow id of a firing: the time that it was due, to the second, in UTC. */
const EXAMPLE_SUFFIX = '-2006-01-02T15:04:05Z';

/** Characters of a schedule's id: 79, so that the batch id of each firing has at most 100. */
const MAX_SCHEDULE_ID_CHARACTERS = MAX_BATCH_ID_CHARACTERS - EXAMPLE_SUFFIX.length;

/** The id is part of the ids of workflows, which Temporal's HTTP API can't carry with a slash in them. */
export function scheduleIdProblems(scheduleId: string): Problem[] {
  if (/^[A-Za-z0-9._~-]+$/.test(scheduleId) && scheduleId.length <= MAX_SCHEDULE_ID_CHARACTERS) return [];
  const text = `must be 1 to ${MAX_SCHEDULE_ID_CHARACTERS} letters, digits, "-", ".", "_" and "~"; it is ${quote(scheduleId)}`;
  return [{ field: 'scheduleId', text }];
}

/** @throws InvalidRequestError with every item that is wrong */
export async function checkItems(scheduleId: string, requests: BatchItems): Promise<readonly BatchItem[]> {
  const { items } = isChecked(requests) ? requests : await checkBatch(requests);
  const batchId = `${scheduleId}${EXAMPLE_SUFFIX}`;
  const problems: Problem[] = [];
  for (const [index, item] of items.entries()) {
    const field = `item ${index + 1}`;
    const { projectId, jobId } = item.request;
    const bytes = followUpWorkflowId(projectId, jobId, requestIdOf(batchId, item)).length;
    if (item.key === null) problems.push({ field, text: NO_NAMES });
    else if (bytes > MAX_WORKFLOW_ID_BYTES) {
      const text = `its workflow ids would be ${bytes} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so give the schedule a shorter id`;
      problems.push({ field, text });
    }
  }
  const bytes = jsonBytes(items);
  if (bytes > MAX_SCHEDULE_BYTES) {
    const text =
      `${(bytes / 2 ** 20).toFixed(1)} MiB as JSON, and a schedule holds ${MAX_SCHEDULE_BYTES / 2 ** 20} MiB at most; ` +
      'let cron run the starter\'s command "batch run" instead, which reads its file each time';
    problems.push({ field: 'items', text });
  }
  if (problems.length > 0) throw new InvalidRequestError(problems);
  return items;
}

const NO_NAMES =
  'requestId: must not be given in a schedule: from the second firing on, nothing would be sent';
