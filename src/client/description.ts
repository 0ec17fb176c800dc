import type { Client, WorkflowExecutionDescription, WorkflowExecutionInfo } from '@temporalio/client';
import { OUTCOMES } from '../contract/outcome';
import { BATCH_WORKFLOW, FOLLOW_UP_WORKFLOW, type KeywordName, MEMO_RECEIPT } from '../contract/names';
import { literalOf } from '../contract/checks';
import {
  type Evidence,
  EVIDENCES,
  isReceipt,
  isVerdict,
  type Receipt,
  type Verdict,
} from '../contract/result';
import { keywordAttributeKey, OUTCOME_KEY } from '../contract/follow-up-start-options';
import { singleLine } from '../contract/text';
import { describeWorkflow, type RunState, toRunState } from '../temporal/workflow-executions';
import { findGrpcError } from '../temporal/grpc-status';
import { readProtoField } from '../temporal/proto-field';
import { latestRuns, listFollowUpRuns } from '../temporal/visibility';
import { findPendingActivity } from '../temporal/raw-requests';
import { notFoundError, runNotFoundError } from './errors';
import { attributesFromFilter, type FollowUpFilter, matchesFilter, queryFromFilter } from './filter';
import { describeNamedRun, type NamedRun } from './named-run';

/** A follow-up as the Temporal server describes it, without a worker. */
export interface FollowUpDescription {
  readonly workflowId: string;
  /** The run that is described. `getHandle(workflowId, runId)` returns its handle. */
  readonly runId: string;
  readonly state: RunState;
  /** When the workflow was started, before any `startDelay`. ISO 8601, UTC, like the other times. */
  readonly startedAt: string;
  /** When the `startDelay` ends. Null after the follow-up has started to run, and in a list. */
  readonly startsAt: string | null;
  /** When the follow-up ended. Null while it runs. */
  readonly endedAt: string | null;
  readonly taskQueue: string;
  /** The latest phase that the workflow recorded. Null if none is recorded. The same applies to `jobStatus`, `projectId` and `jobId`. */
  readonly phase: string | null;
  /**
   * How the follow-up ended, such as `completed` or `DeliveryUnknown`. Null while it runs, and if it was terminated or timed
   * out.
   */
  readonly outcome: string | null;
  /**
   * The delivery's verdict, which the follow-up records when it ends. Until then, and if the follow-up was terminated or timed
   * out, the verdict is null. Exception: the verdict is `unknown` if a pending send has a recorded permission, or a heartbeat
   * that this client can't decode, because its message may have been sent. A list does not have this exception.
   */
  readonly verdict: Verdict | null;
  /** The evidence for the final status, such as `seen-active`. Null while the follow-up runs, and if no status was accepted. */
  readonly evidence: Evidence | null;
  readonly jobStatus: string | null;
  readonly projectId: string | null;
  readonly jobId: string | null;
  /** Why the workflow task keeps failing, for example a missing search attribute. Null if it does not fail, and in a list. */
  readonly workflowTaskFailure: string | null;
  /**
   * The receipt in the memo. A cancelled follow-up has this receipt, and so has a batch item that ended, unless the item was
   * terminated or timed out. Null for every other follow-up, and in a list.
   */
  readonly receipt: Receipt | null;
}

const isKnownEvidence = literalOf(...EVIDENCES);

/** Returns whether a value can be an outcome that a later version added. */
function isOtherValue(value: string): boolean {
  return !isVerdict(value) && !isKnownEvidence(value);
}

/** Describes a run of a follow-up. @throws NotFoundError */
export async function describeFollowUp(client: Client, run: NamedRun): Promise<FollowUpDescription> {
  const found = await findFollowUp(client, run);
  const description = toDescription(found);
  const verdict = (await isPossiblySending(client, found)) ? 'unknown' : description.verdict;
  const { startsAt } = found;
  return { ...description, verdict, startsAt, workflowTaskFailure: await readTaskFailure(client, found) };
}

/** Returns whether a send is in progress whose permission was recorded. */
async function isPossiblySending(client: Client, info: WorkflowExecutionDescription): Promise<boolean> {
  try {
    const pending = await findPendingActivity(client, info, 'sendMessage');
    return pending !== undefined && hasRecordedPermission(pending);
  } catch {
    // If this client can't decode the heartbeat, the heartbeat may be a permission.
    return true;
  }
}

/** Returns whether the permission of a pending send was recorded. If it was, the message may have been sent. */
export function hasRecordedPermission({ details }: { readonly details: unknown }): boolean {
  return details !== null && details !== undefined;
}

/** The Temporal server's description of a run of a follow-up, with the same `state` and `startsAt` as {@link FollowUpDescription}. */
type FoundFollowUp = WorkflowExecutionDescription & Pick<FollowUpDescription, 'state' | 'startsAt'>;

/** @throws NotFoundError if no workflow has this ID, if the workflow is not a follow-up, or if it no longer has the run */
export async function findFollowUp(client: Client, run: NamedRun): Promise<FoundFollowUp> {
  const { workflowId, runId } = run;
  const info = await describeNamedRun(client, run);
  if (info?.type === FOLLOW_UP_WORKFLOW) {
    // The Temporal server schedules the first workflow task after the start delay, so until then the history has one event.
    const startsAt = info.historyLength === 1 ? (info.executionTime?.toISOString() ?? null) : null;
    return { ...info, state: toRunState(info.status.name), startsAt };
  }
  const { namespace } = client.options;
  if (info !== null) {
    const found =
      info.type === BATCH_WORKFLOW
        ? 'the workflow with this ID is a batch'
        : `the workflow with this ID has the type ${JSON.stringify(info.type)}`;
    throw notFoundError('follow-up', workflowId, namespace, found);
  }
  if (runId !== undefined && (await describeWorkflow(client, workflowId)) !== null)
    throw runNotFoundError('follow-up', workflowId, runId);
  throw notFoundError('follow-up', workflowId, namespace);
}

function toDescription(info: Omit<WorkflowExecutionInfo, 'raw'>): FollowUpDescription {
  const readAttribute = (name: KeywordName): string | null =>
    info.typedSearchAttributes.get(keywordAttributeKey(name)) ?? null;
  // The Temporal server does not guarantee the order of a KeywordList's values.
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
    outcome: OUTCOMES.find((value) => values.includes(value)) ?? values.find(isOtherValue) ?? null,
    verdict: values.find(isVerdict) ?? null,
    evidence: values.find(isKnownEvidence) ?? null,
    jobStatus: readAttribute('AgentJobStatus'),
    projectId: readAttribute('AgentProject'),
    jobId: readAttribute('AgentJob'),
    workflowTaskFailure: null,
    receipt: isReceipt(receipt) ? receipt : null,
  };
}

/** Returns why the workflow task of a run keeps failing; null if it does not fail. */
export async function readTaskFailure(
  { workflowService, options }: Client,
  { workflowId, runId, raw }: Pick<WorkflowExecutionDescription, 'workflowId' | 'runId' | 'raw'>,
): Promise<string | null> {
  if ((readProtoField(raw.pendingWorkflowTask?.attempt) ?? 1) <= 1) return null;
  const request = {
    namespace: options.namespace,
    execution: { workflowId, runId },
    // Twenty events are enough to reach the latest workflow task that ended, because only a few events follow it.
    maximumPageSize: 20,
  };
  const response = await workflowService
    .getWorkflowExecutionHistoryReverse(request)
    .catch((error: unknown) => {
      const text = findGrpcError(error)?.text;
      if (text === undefined) throw error;
      return text;
    });
  if (typeof response === 'string')
    return `the workflow task keeps failing and is retried; the Temporal server does not return the cause (${response})`;
  const { history } = response;
  const latest = history?.events?.find(
    (event) => event.workflowTaskFailedEventAttributes ?? event.workflowTaskCompletedEventAttributes,
  );
  const message = latest?.workflowTaskFailedEventAttributes?.failure?.message;
  if (!message) return null;
  // The namespace can lack the attributes, for example because an in-memory Temporal server has restarted.
  const advice = message.includes('no mapping defined for search attribute')
    ? '; run `agent-follow-up setup`'
    : '';
  return `the workflow task keeps failing and is retried: ${singleLine(message, 500)}${advice}`;
}

/** Lists the latest run of each follow-up that matches the filter. */
export async function* listFollowUps(
  client: Client,
  filter: FollowUpFilter,
): AsyncGenerator<FollowUpDescription, void, undefined> {
  // A run that was continued as new is never the latest run.
  const restriction = ` AND ExecutionStatus != 'ContinuedAsNew'${queryFromFilter(filter)}`;
  const runs = listFollowUpRuns(client, attributesFromFilter(filter), { restriction });
  for await (const info of latestRuns(client, runs)) {
    const found = toDescription(info);
    if (matchesFilter(found, filter)) yield found;
  }
}
