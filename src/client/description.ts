import type { Client, WorkflowExecutionDescription, WorkflowExecutionInfo } from '@temporalio/client';
import { FOLLOW_UP_WORKFLOW, type KeywordName, MEMO_RECEIPT } from '../contract/names';
import { isReceipt, isVerdict, type Phase, type Receipt, type Verdict } from '../contract/result';
import { keywordAttribute, keywordAttributeKey, OUTCOME_KEY } from '../contract/follow-up-start-options';
import { singleLine } from '../contract/text';
import { describeWorkflow, type RunState, toRunState } from '../temporal/workflow-executions';
import { listWorkflows } from '../temporal/visibility';
import { findPendingActivity } from '../temporal/sdk-internals';
import { notFoundError, throwIfProblems } from './errors';
import { nameProblems, unknownOptions } from './options';

/** What the Temporal server knows of a follow-up, without a worker. */
export interface FollowUpDescription {
  readonly workflowId: string;
  readonly runId: string;
  readonly state: RunState;
  readonly startedAt: string;
  /** When it begins, by its `startDelay`; null once it has begun, and in a list. */
  readonly startsAt: string | null;
  /** Null while it runs. */
  readonly endedAt: string | null;
  readonly taskQueue: string;
  /** By its last transition, as the fields below; null where it is not set. */
  readonly phase: string | null;
  /** How the follow-up ended, such as `completed` or `DeliveryUnknown`. Null while it runs, and if it was terminated. */
  readonly outcome: string | null;
  /**
   * The delivery's verdict when the follow-up ended. While it runs, the verdict is `unknown` if a send in progress has recorded its
   * permission, after which the message may have been sent at any moment; null otherwise, and for a running follow-up in a list.
   */
  readonly verdict: Verdict | null;
  readonly jobStatus: string | null;
  readonly projectId: string | null;
  readonly jobId: string | null;
  /** Why its workflow task fails again and again, such as a missing search attribute; null while it does not, and in a list. */
  readonly workflowTaskFailure: string | null;
  /** Left by a cancelled follow-up only; null in a list. */
  readonly receipt: Receipt | null;
}

/** @throws NotFoundError */
export async function describeFollowUp(client: Client, workflowId: string): Promise<FollowUpDescription> {
  const info = await findFollowUp(client, workflowId);
  // The first event alone: no task is made before the delay is over.
  const startsAt = info.historyLength === 1 ? (info.executionTime?.toISOString() ?? null) : null;
  const description = toDescription(info);
  const verdict = (await isPossiblySending(client, info)) ? 'unknown' : description.verdict;
  return {
    ...description,
    verdict,
    startsAt: startsAt,
    workflowTaskFailure: await readTaskFailure(client, info),
  };
}

/** Whether a send is in progress that has recorded its permission. */
async function isPossiblySending(client: Client, info: WorkflowExecutionDescription): Promise<boolean> {
  try {
    const pending = await findPendingActivity(client, info, 'sendMessage');
    return pending !== undefined && hasRecordedPermission(pending);
  } catch {
    // This client can't decode the heartbeat, which may be a permission.
    return true;
  }
}

/** Whether a send has recorded its permission, after which the message may have been sent. */
export function hasRecordedPermission({ details }: { readonly details: unknown }): boolean {
  return details !== null && details !== undefined;
}

/** @throws NotFoundError when there is no such workflow, or it is not a follow-up */
export async function findFollowUp(client: Client, workflowId: string) {
  const info = await describeWorkflow(client, workflowId);
  if (info?.type === FOLLOW_UP_WORKFLOW) return info;
  const found = info ? `the workflow of this id has the type ${JSON.stringify(info.type)}` : undefined;
  throw notFoundError('follow-up', workflowId, client.options.namespace, found);
}

function toDescription(info: Omit<WorkflowExecutionInfo, 'raw'>): FollowUpDescription {
  const readAttribute = (name: KeywordName): string | null =>
    info.typedSearchAttributes.get(keywordAttributeKey(name)) ?? null;
  // A server need not keep the order of a KeywordList.
  const values = info.typedSearchAttributes.get(OUTCOME_KEY) ?? [];
  const receipt = info.memo?.[MEMO_RECEIPT];
  return {
    workflowId: info.workflowId,
    runId: info.runId,
    state: toRunState(info.status.name),
    startedAt: info.startTime.toISOString(),
    startsAt: null,
    endedAt: info.closeTime?.toISOString() ?? null,
    taskQueue: info.taskQueue,
    phase: readAttribute('FollowUpPhase'),
    outcome: values.find((value) => !isVerdict(value)) ?? null,
    verdict: values.find(isVerdict) ?? null,
    jobStatus: readAttribute('AgentJobStatus'),
    projectId: readAttribute('AgentProject'),
    jobId: readAttribute('AgentJob'),
    workflowTaskFailure: null,
    receipt: isReceipt(receipt) ? receipt : null,
  };
}

/** Why the latest workflow task of a run fails, again and again; null where it does not. */
export async function readTaskFailure(
  { workflowService, options }: Client,
  { workflowId, runId, raw }: Pick<WorkflowExecutionDescription, 'workflowId' | 'runId' | 'raw'>,
): Promise<string | null> {
  if ((raw.pendingWorkflowTask?.attempt ?? 1) <= 1) return null;
  const { history } = await workflowService.getWorkflowExecutionHistoryReverse({
    namespace: options.namespace,
    execution: { workflowId, runId },
    // Enough to find the end of a workflow task, behind what has come since.
    maximumPageSize: 20,
  });
  const latest = history?.events?.find(
    (event) => event.workflowTaskFailedEventAttributes ?? event.workflowTaskCompletedEventAttributes,
  );
  const message = latest?.workflowTaskFailedEventAttributes?.failure?.message;
  return message ? `its workflow task fails, and is tried again: ${singleLine(message, 500)}` : null;
}

/** A field that is left out does not restrict the list. */
export interface FollowUpFilter {
  readonly phase?: Phase | undefined;
  /** The outcome, such as `completed` or `DeadlineExceeded`, or the verdict, such as `unknown`. */
  readonly outcome?: string | undefined;
  readonly projectId?: string | undefined;
  readonly jobId?: string | undefined;
  readonly batchId?: string | undefined;
}

const FILTER_ATTRIBUTES: Readonly<Record<Exclude<keyof FollowUpFilter, 'outcome'>, KeywordName>> = {
  phase: 'FollowUpPhase',
  projectId: 'AgentProject',
  jobId: 'AgentJob',
  batchId: 'FollowUpBatch',
};

/** @throws InvalidRequestError */
export function checkFilter(filter: FollowUpFilter): void {
  const problems = unknownOptions(filter, [...Object.keys(FILTER_ATTRIBUTES), 'outcome']);
  for (const [field, value] of Object.entries(filter)) {
    if (value !== undefined) problems.push(...nameProblems(field, value));
    if (field === 'outcome' && !/^[a-z-]*$/i.test(String(value)))
      problems.push({ field, text: 'must be an outcome or a verdict, such as completed or unknown' });
  }
  throwIfProblems(problems);
}

export async function* listFollowUps(
  client: Client,
  { outcome, ...exact }: FollowUpFilter,
): AsyncGenerator<FollowUpDescription, void, undefined> {
  const filters = Object.entries(exact).flatMap(([field, value]) =>
    value === undefined
      ? []
      : [keywordAttribute(FILTER_ATTRIBUTES[field as keyof typeof FILTER_ATTRIBUTES], value)],
  );
  const restriction = outcome === undefined ? '' : ` AND ${OUTCOME_KEY.name} = '${outcome}'`;
  for await (const info of listWorkflows(client, filters, { restriction })) {
    const found = toDescription(info);
    if (outcome === undefined || outcome === found.outcome || outcome === found.verdict) yield found;
  }
}
