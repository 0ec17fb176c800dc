import type { ScheduleDescription as TemporalSchedule } from '@temporalio/client';
import { itemProblems as checkItems } from '../../batch/check-items';
import { jsonBytes } from '../../batch/json-size';
import { BATCH_PRIORITY_KEY, type BatchItem, CONCURRENCY, MAX_SCHEDULE_BYTES } from '../../contract/batch';
import { BATCH_WORKFLOW, type BatchInput } from '../../contract/batch-workflows';
import { requestIdOf } from '../../contract/batch-id';
import { MAX_WORKFLOW_ID_BYTES } from '../../contract/bounds';
import { isRecord } from '../../contract/field-reader';
import { markdownCode } from '../../contract/markdown';
import { batchSummary } from '../../contract/start-words';
import { followUpWorkflowId } from '../../contract/workflow-id';
import { itemsDigest } from '../batch/identity';
import { MEMO_ITEMS_DIGEST } from '../batch/memo';
import { ProblemList } from '../batch/problem-list';
import { overlapOf, policyOf } from './overlap';
import { actionWorkflowId, exampleBatchId } from './schedule-id';
import type { ScheduleSettings } from './settings';
import { timezoneOf } from './timezone';
import { specOf, timingsOf } from './timing';

/** All that a schedule is, but whether it is paused: when it fires, and what each firing sends. */
export interface ScheduleDefinition {
  readonly settings: ScheduleSettings;
  readonly items: readonly BatchItem[];
}

/** Why an item of a schedule has no `requestId` of its own. */
export const NO_NAMES =
  'must not be given in a schedule: the same name is never sent twice, so that every later firing would find its message sent';

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

/** What a schedule is made of in Temporal's terms. */
export function temporalOptions(scheduleId: string, { settings, items }: ScheduleDefinition) {
  const { timing, timezone, startAt, endAt, jitterMs, concurrency, tolerate } = settings;
  const input: BatchInput = { concurrency, tolerate, items };
  const action = {
    type: 'startWorkflow' as const,
    workflowType: BATCH_WORKFLOW,
    taskQueue: settings.taskQueue,
    workflowId: actionWorkflowId(scheduleId),
    args: [input],
    memo: { [MEMO_ITEMS_DIGEST]: itemsDigest(items) },
    staticSummary: `${batchSummary(items.length)} by the schedule ${markdownCode(scheduleId)}`,
    // The SDK's type lacks it; it is sent nevertheless.
    priority: { priorityKey: BATCH_PRIORITY_KEY },
  };
  return {
    spec: {
      ...specOf(timing),
      timezone,
      // Without one the server adds up to a second.
      jitter: jitterMs,
      ...(startAt === null ? {} : { startAt: new Date(startAt) }),
      ...(endAt === null ? {} : { endAt: new Date(endAt) }),
    },
    action,
    policies: {
      overlap: policyOf(settings.overlap),
      catchupWindow: settings.catchupWindowMs,
      pauseOnFailure: settings.pauseOnFailure,
    },
  };
}

type Action = TemporalSchedule['action'];

/**
 * The action of a schedule that is changed: what is said of it here, and everything else as somebody has set it by hand
 * (time-outs, search attributes, other fields of the input, …).
 */
export function mergedAction(before: Action, made: ReturnType<typeof temporalOptions>['action']) {
  const others = (before.args ?? []).slice(1) as unknown[];
  const [input] = made.args;
  const sameItems = JSON.stringify(inputOf(before).items) === JSON.stringify(input?.items);
  const summary = sameItems ? before.staticSummary : undefined;
  return {
    ...before,
    ...made,
    // The typed ones are the same, and the SDK refuses to be told twice.
    searchAttributes: {},
    workflowId: before.workflowId,
    args: [{ ...inputOf(before), ...input }, ...others],
    memo: { ...before.memo, ...made.memo },
    priority: before.priority ?? made.priority,
    staticSummary: summary ?? made.staticSummary,
  };
}

/** Why the items of an action can't be run: somebody has edited it by hand. */
export function editedItemProblems(scheduleId: string, { action }: TemporalSchedule): string[] {
  const { items }: { readonly items?: unknown } = inputOf(action);
  if (!Array.isArray(items)) return ['items: the schedule has none that can be read; give them again'];
  return checkItems(items, exampleBatchId(scheduleId)).map(
    (problem) => `items: as they are in the schedule, ${problem}`,
  );
}

function inputOf({ args }: Action): BatchInput {
  const [argument] = (args ?? []) as unknown[];
  return isRecord(argument) ? argument : {};
}

/** The definition of a schedule that is there, whoever has changed it since: of its items those that are any. */
export function definitionOf({ spec, policies, action }: TemporalSchedule): ScheduleDefinition {
  const input = inputOf(action);
  const items: unknown = input.items;
  return {
    items: Array.isArray(items) ? items.filter(isItem) : [],
    settings: {
      timing: timingsOf(spec),
      timezone: timezoneOf(spec),
      startAt: spec.startAt?.toISOString() ?? null,
      endAt: spec.endAt?.toISOString() ?? null,
      jitterMs: spec.jitter ?? 0,
      overlap: overlapOf(policies.overlap),
      catchupWindowMs: policies.catchupWindow,
      pauseOnFailure: policies.pauseOnFailure,
      concurrency: input.concurrency ?? CONCURRENCY.default,
      tolerate: input.tolerate ?? null,
      taskQueue: action.taskQueue,
    },
  };
}

function isItem(item: unknown): item is BatchItem {
  return isRecord(item) && isRecord(item.request);
}
