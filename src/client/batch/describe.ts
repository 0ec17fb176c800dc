import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import {
  batchMemo,
  type BatchMemo,
  type BatchInput,
  type Begun,
  begunBy,
  isPosition,
  START,
} from '../../core/batch/state';
import { type BatchProgress, progressOf } from '../../core/batch/progress';
import { SEND_PERMISSION_MS } from '../../core/cadence';
import { batchIdOf, batchWorkflowId } from '../../core/ids';
import { BATCH_WORKFLOW, NO_CHANGE } from '../../core/names';
import { isRecord } from '../../core/checks';
import { ItemsGoneError } from '../../temporal/batch-items';
import { describeWorkflow, readOwnInput, type RunState, stateOf } from '../../temporal/existing-run';
import { activityContext, decodeFirst, workersPolling } from '../../temporal/sdk-internals';
import { SERVER_LIMIT_MS, within } from '../call';
import { failedTask } from '../description';
import { notFound, silence } from '../errors';

/** What the Temporal server knows of a batch. It needs no worker. */
export interface BatchDescription {
  readonly workflowId: string;
  readonly batchId: string;
  readonly runId: string;
  readonly state: RunState;
  readonly startedAt: string;
  /** Null while it runs. */
  readonly endedAt: string | null;
  readonly taskQueue: string;
  /** How far it is, and with which settings; null where no worker has taken it up yet. */
  readonly memo: BatchMemo | null;
  /** Its memo may be as old as the point to which it was reset. */
  readonly wasReset: boolean;
  /** Why it does not go on, and what helps; null where nothing is wrong. */
  readonly trouble: string | null;
}

/** A batch id as a schedule makes it, which is part of the workflow id as it is. */
const SCHEDULED = /^[A-Za-z0-9._~:-]+$/;

/** Looks for a batch by its id, or by its workflow id, which holds the time if a schedule has started it; else null. */
export async function lookForBatch(client: Client, batch: string): Promise<BatchDescription | null> {
  const batchId = batchIdOf(batch);
  const asItIs = SCHEDULED.test(batchId) ? [`follow-up-batch:${batchId}`] : [];
  for (const workflowId of new Set([batchWorkflowId(batchId), ...asItIs])) {
    const info = await describeWorkflow(client, workflowId);
    if (info?.type === BATCH_WORKFLOW) return descriptionOf(client, info);
  }
  return null;
}

async function descriptionOf(client: Client, info: WorkflowExecutionDescription): Promise<BatchDescription> {
  const { workflowId, runId, raw } = info;
  const kept = batchMemo(info.memo);
  const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'runItems');
  const context = activityContext(client.options.namespace, workflowId, pending?.activityId ?? '');
  const payloads = pending?.heartbeatDetails?.payloads;
  const details = payloads && payloads.length > 0 ? await decodeFirst(client, payloads, context) : null;
  const memo = kept !== null && isPosition(details) ? { ...kept, ...details } : kept;
  const failure = pending?.lastFailure;
  const fails = failure && failure.applicationFailureInfo?.type !== NO_CHANGE ? failure.message : null;
  const isPaused = pending?.paused === true;
  const trouble = [
    isPaused ? 'somebody has paused its activity; `temporal activity unpause` lets it go on' : null,
    fails ? `its activity fails, and is tried again: ${fails}` : null,
    await failedTask(client, info),
  ];
  return {
    workflowId,
    batchId: memo?.batchId ?? batchIdOf(workflowId),
    runId,
    state: stateOf(info.status.name),
    startedAt: memo?.startedAt ?? info.startTime.toISOString(),
    endedAt: info.closeTime?.toISOString() ?? null,
    taskQueue: info.taskQueue,
    memo,
    wasReset: Boolean(raw.workflowExtendedInfo?.lastResetTime),
    trouble: trouble.find((each) => each !== null) ?? null,
  };
}

/** @throws NotFoundError */
export async function findBatch(client: Client, batch: string): Promise<BatchDescription> {
  const found = await lookForBatch(client, batch);
  if (found === null) throw notFound('batch', batch, client.options.namespace);
  return found;
}

const ENDED: Partial<Record<RunState, BatchProgress['state']>> = {
  completed: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  terminated: 'cancelled',
};

/** Where a batch stands. */
export interface BatchReport {
  readonly description: BatchDescription;
  /** Null where no worker has taken the batch up yet. */
  readonly progress: BatchProgress | null;
  /** Why it does not go on, and what helps; null where nothing is wrong. */
  readonly trouble: string | null;
}

export async function reportOf(client: Client, batch: string): Promise<BatchReport> {
  const description = await within(client, SERVER_LIMIT_MS, () => findBatch(client, batch));
  const { memo, taskQueue, state } = description;
  const progress = memo && progressOf(memo, ENDED[state] ?? null);
  if (state !== 'running' || description.trouble !== null)
    return { description, progress, trouble: description.trouble };
  const workers = (await workersPolling(client, taskQueue)).length;
  return { description, progress, trouble: workers === 0 ? silence(taskQueue, workers) : null };
}

/** A run that was ended early may still start a group, as long as its permission lasts. */
export const QUIET_AFTER_MS = SEND_PERMISSION_MS + 5_000;

/** What a further run must take as begun by this one. */
export async function begunOf(client: Client, batch: BatchDescription): Promise<Begun> {
  const { wasReset, startedAt, state, endedAt } = batch;
  const { begun = null, chunks, items } = await inputOf(client, batch);
  // Where no worker has written anything down, it has begun nothing, and knows what it was told.
  const memo = batch.memo ?? {
    ...{ ...START, begun, ending: null, movingSince: null },
    items: chunks?.items ?? items?.length ?? 0,
  };
  const isEarly = state === 'terminated' || state === 'timed-out' || memo.ending === 'reset';
  const quietAt = isEarly ? Date.parse(endedAt ?? '') + QUIET_AFTER_MS : 0;
  const isAtRest = memo.movingSince === null && memo.lanes.every(([, , how]) => how !== 'may');
  if (!wasReset && isAtRest) return begunBy(memo, { quietAt, isExact: true });
  // What exists tells the rest, unless the server has forgotten some of it. After a reset the memo is as old as its point.
  const { namespace } = client.options;
  const { config } = await client.workflowService.describeNamespace({ namespace });
  const retentionMs = 1_000 * Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0);
  const since = wasReset ? Date.parse(startedAt) : (memo.movingSince ?? Date.parse(startedAt));
  const isCertain = Date.now() - since < retentionMs;
  return begunBy({ ...memo, bound: wasReset ? memo.items : memo.bound }, { isCertain, quietAt });
}

/** What the latest run of a batch was started with. @throws FollowUpError `BATCH_FORGOTTEN` */
export async function inputOf(client: Client, batch: BatchDescription): Promise<BatchInput> {
  const { workflowId, runId, batchId, memo } = batch;
  const run = await readOwnInput(client, workflowId, runId);
  if (!isRecord(run?.input)) throw new ItemsGoneError(batchId);
  const input = run.input as BatchInput;
  // A run that continues as new has no such fields in its input.
  return {
    ...input,
    digest: input.digest ?? memo?.digest ?? null,
    begun: input.begun ?? memo?.begun ?? null,
  };
}
