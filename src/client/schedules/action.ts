import type { ScheduleDescription as TemporalSchedule } from '@temporalio/client';
import {
  BATCH_PRIORITY_KEY,
  type BatchItem,
  itemProblems as checkItems,
  MAX_SCHEDULE_BYTES,
  MAX_BATCH_ID_CHARACTERS,
  requestIdOf,
} from '../../core/batch';
import { markdownCode, MAX_WORKFLOW_ID_BYTES, quote } from '../../core/text';
import { jsonBytes, isRecord } from '../../core/json';
import { batchWorkflowId, followUpWorkflowId } from '../../core/ids';
import { BATCH_TASK_TIMEOUT_MS, BATCH_WORKFLOW, type BatchInput } from '../../core/batch-workflows';
import { batchSummary } from '../../core/names';
import type { FollowUpRequest } from '../../core/request';
import { batchOfRequests, type CheckedBatch, ProblemList } from '../batch/items';
import { itemsDigest } from '../batch/identity';
import { MEMO_ITEMS_DIGEST } from '../batch/describe-batch';
import type { ScheduleSettings } from './settings';

/** What Temporal appends to the workflow id of a firing: the time that it was due, to the second, in UTC. */
const EXAMPLE_SUFFIX = '-2006-01-02T15:04:05Z';

/** Characters of a schedule's id: 79, so that the batch id of each firing has at most 100. */
export const MAX_SCHEDULE_ID_CHARACTERS = MAX_BATCH_ID_CHARACTERS - EXAMPLE_SUFFIX.length;

/** Why an item of a schedule has no `requestId` of its own. */
export const NO_NAMES =
  'must not be given in a schedule: the same name is never sent twice, so that every later firing would find its message sent';

/**
 * Why a text is not an id of a schedule; none where it is one: 1 to 79 letters, digits, `-`, `.`, `_`, `~`. It is part of
 * the ids of workflows, which Temporal's HTTP API can't carry with a slash in them, and nothing of it is ever encoded.
 */
export function idProblems(scheduleId: string): string[] {
  const [other] = /[^A-Za-z0-9._~-]/u.exec(scheduleId) ?? [];
  if (scheduleId === '')
    return [`scheduleId: must not be empty; give 1 to ${MAX_SCHEDULE_ID_CHARACTERS} characters`];
  if (other !== undefined)
    return [
      `scheduleId: must be made of letters, digits, "-", ".", "_" and "~" only; it holds ${quote(other)}`,
    ];
  return scheduleId.length <= MAX_SCHEDULE_ID_CHARACTERS
    ? []
    : [
        `scheduleId: must have at most ${MAX_SCHEDULE_ID_CHARACTERS} characters, because the batch id of each firing is made of it and its time; it has ${scheduleId.length}`,
      ];
}

/** A batch id as a firing will have, for checks of what is made of it. */
export function exampleBatchId(scheduleId: string): string {
  return `${scheduleId}${EXAMPLE_SUFFIX}`;
}

/** The id of the batch that a firing has started. */
export function batchIdOfFiring(workflowId: string): string {
  return workflowId.replace(/^follow-up-batch:/, '');
}

/** What a schedule sends: requests, or a batch that was checked before. */
export type ScheduleItems = Iterable<FollowUpRequest> | AsyncIterable<FollowUpRequest> | CheckedBatch;

/** @throws InvalidBatchError with every problem, by number from 1 */
export async function checkedItems(scheduleId: string, items: ScheduleItems): Promise<readonly BatchItem[]> {
  const batch = 'digest' in items ? items : await batchOfRequests(items, exampleBatchId(scheduleId));
  return batch.items;
}

/** What keeps items from being those of a schedule, whoever has checked them before. */
export function itemProblems(scheduleId: string, items: readonly BatchItem[]): string[] {
  const problems = new ProblemList('item');
  for (const [index, item] of items.entries()) {
    const { projectId, jobId } = item.request;
    const workflowId = followUpWorkflowId(projectId, jobId, requestIdOf(exampleBatchId(scheduleId), item));
    if (item.key === null) problems.add(index + 1, `requestId: ${NO_NAMES}`);
    else if (workflowId.length > MAX_WORKFLOW_ID_BYTES) {
      const bytes = `its workflow ids would be ${workflowId.length} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible`;
      problems.add(index + 1, `${bytes}, so give the schedule a shorter id`);
    }
  }
  const bytes = jsonBytes(items);
  if (bytes > MAX_SCHEDULE_BYTES) {
    problems.addGeneral(
      `${(bytes / 2 ** 20).toFixed(1)} MiB as JSON, and a schedule holds ${MAX_SCHEDULE_BYTES / 2 ** 20} MiB at most; ` +
        'let cron run the starter\'s command "batch run" instead, which reads its file each time',
    );
  }
  return problems.inWords().map((problem) => `items: ${problem}`);
}

/** What each firing of a schedule starts. */
export function newAction(scheduleId: string, settings: ScheduleSettings, items: readonly BatchItem[]) {
  const { concurrency, tolerate, taskQueue } = settings;
  const input: BatchInput = { concurrency, tolerate, items };
  return {
    type: 'startWorkflow' as const,
    workflowType: BATCH_WORKFLOW,
    taskQueue,
    // Temporal makes the workflow id of each firing of it and the time.
    workflowId: batchWorkflowId(scheduleId),
    args: [input] as [BatchInput],
    memo: { [MEMO_ITEMS_DIGEST]: itemsDigest(items) },
    workflowTaskTimeout: BATCH_TASK_TIMEOUT_MS,
    staticSummary: `${batchSummary(items.length)} by the schedule ${markdownCode(scheduleId)}`,
    // The SDK's type lacks it; it is sent nevertheless.
    priority: { priorityKey: BATCH_PRIORITY_KEY },
  };
}

/**
 * The action of a schedule that is changed: what this client knows of it, and everything else as somebody has set it by
 * hand (time-outs, search attributes, other fields of the input, …).
 *
 * @param items undefined for those that it has
 */
export function changedAction(
  { scheduleId, action }: TemporalSchedule,
  settings: ScheduleSettings,
  items: readonly BatchItem[] | undefined,
) {
  const before = inputOf(action);
  // As the SDK reads it from the server.
  const { workflowTaskTimeout } = action as { readonly workflowTaskTimeout?: number };
  const made = newAction(scheduleId, settings, items ?? itemsOf(action));
  const [input] = made.args;
  const hasSameItems = JSON.stringify(before.items) === JSON.stringify(input.items);
  const summary = hasSameItems ? action.staticSummary : undefined;
  return {
    ...action,
    ...made,
    // The typed ones are the same, and the SDK takes one of the two.
    searchAttributes: {},
    workflowId: action.workflowId,
    args: [{ ...before, ...input }, ...((action.args ?? []).slice(1) as unknown[])],
    memo: { ...action.memo, ...made.memo },
    workflowTaskTimeout: workflowTaskTimeout ?? made.workflowTaskTimeout,
    priority: action.priority ?? made.priority,
    staticSummary: summary ?? made.staticSummary,
  };
}

/** The input of the batches of a schedule that is there, whoever has changed it since. */
export function inputOf({ args }: TemporalSchedule['action']): BatchInput {
  const [argument] = (args ?? []) as unknown[];
  return isRecord(argument) ? argument : {};
}

/** The items of a schedule that is there, as far as they are any. */
export function itemsOf(action: TemporalSchedule['action']): readonly BatchItem[] {
  const { items }: { readonly items?: unknown } = inputOf(action);
  const isItem = (item: unknown): item is BatchItem => isRecord(item) && isRecord(item.request);
  return Array.isArray(items) ? items.filter(isItem) : [];
}

/** Why the items of a schedule can't be kept: somebody has edited them by hand. */
export function keptItemProblems({ scheduleId, action }: TemporalSchedule): string[] {
  const { items }: { readonly items?: unknown } = inputOf(action);
  if (!Array.isArray(items)) return ['items: the schedule has none that can be read; give them again'];
  return checkItems(items, exampleBatchId(scheduleId)).map(
    (problem) => `items: as they are in the schedule, ${problem}`,
  );
}
