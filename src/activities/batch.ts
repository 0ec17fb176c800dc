import { Context } from '@temporalio/activity';
import {
  type Client,
  type WorkflowExecutionDescription,
  WorkflowFailedError,
  type WorkflowHandle,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { keywordKey } from '../temporal/search-attributes';
import { describeWorkflow, firstRunOf, ignoreClosed, readInput, stateOf } from '../temporal/existing-run';
import type { FollowUpResult } from '../core/result';
import type { FollowUpActivities, NamedFollowUp } from '../core/wire';
import {
  BATCH_PAGE_WORKFLOW,
  type EarlierPage,
  type PageInput,
  type PageResult,
  noPlaces,
  SIGNAL_ALLOT,
} from '../core/batch/workflows';
import { digestOf, runOf } from '../core/ids';
import { isRecord } from '../core/checks';
import {
  brokenEnd,
  endOfCancelled,
  endOfConflict,
  endOfFailure,
  endOfResult,
  endWithoutReceipt,
  type EndOfItem,
  type ItemOutcome,
} from '../core/batch/batch';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST, MEMO_RECEIPT, SIGNAL_WAKE } from '../core/names';
import { grpcError } from '../temporal/grpc-status';
import { askAgainIn, ownRun } from './attempt';

/**
 * How soon a follow-up that runs is asked for again: soon at first, as most of a resumed batch have ended, and then as often
 * as a page looks.
 */
const FIRST_WAIT_MS = 5_000;

/** A cancelled follow-up ends when its POST under way is answered. */
const CANCELLED_WAIT_MS = 1_000;

export const followUpEnds: FollowUpActivities['followUpEnds'] = (followUps) => {
  const { client } = Context.current();
  return Promise.all(followUps.map(async (each) => (await look(client, each)).end));
};

export function followUpEndEvery(lookEveryMs: number): FollowUpActivities['followUpEnd'] {
  return async ({ cancelOf, ...followUp }) => {
    const { client, info } = Context.current();
    const { end, batchId } = await look(client, followUp);
    if (end !== null) return end;
    if (cancelOf === undefined) {
      const waitMs = Math.min(lookEveryMs, FIRST_WAIT_MS * info.attempt);
      throw askAgainIn(waitMs, 'the follow-up still runs');
    }
    if (batchId !== cancelOf) return endWithoutReceipt('left-running');
    await client.workflow.getHandle(followUp.workflowId).cancel().catch(ignoreClosed);
    throw askAgainIn(CANCELLED_WAIT_MS, 'the follow-up is being cancelled');
  };
}

/** For a workflow of somebody else: the first question comes soon, as many have ended; then it may take hours. */
const FIRST_RESULT_WAIT_MS = 2_000;
const LONGEST_RESULT_WAIT_MS = 60_000;

/** Ends without a result or a failure of the workflow itself. */
const TYPES: Partial<Record<ItemOutcome, string>> = {
  conflict: 'FollowUpConflict',
  cancelled: 'FollowUpCancelled',
  terminated: 'FollowUpTerminated',
  'timed-out': 'FollowUpTimedOut',
  gone: 'FollowUpNotFound',
};

export const followUpResult: FollowUpActivities['followUpResult'] = async (followUp) => {
  const { client, info } = Context.current();
  const { end, result, failure } = await look(client, followUp);
  if (failure !== undefined) throw failure;
  if (result !== undefined) return result;
  if (end !== null) throw ApplicationFailure.nonRetryable(end.message ?? '', TYPES[end.outcome]);
  const waitMs = Math.min(LONGEST_RESULT_WAIT_MS, FIRST_RESULT_WAIT_MS * info.attempt);
  throw askAgainIn(waitMs, 'the follow-up still runs');
};

interface Look {
  /** Null while it runs. */
  readonly end: EndOfItem | null;
  readonly result?: FollowUpResult;
  readonly failure?: Error;
  /** The batch that has started it. */
  readonly batchId?: string | undefined;
}

async function look(client: Client, followUp: NamedFollowUp): Promise<Look> {
  const handle = client.workflow.getHandle(followUp.workflowId);
  try {
    const description = await handle.describe();
    const conflict = await conflictOf(client, followUp, description);
    if (conflict !== null) return { end: conflict };
    const state = stateOf(description.status.name);
    if (state === 'terminated' || state === 'timed-out') return { end: endWithoutReceipt(state) };
    if (state === 'cancelled') return { end: endOfCancelled(description.memo?.[MEMO_RECEIPT]) };
    if (state !== 'running') {
      const result = (await handle.result()) as FollowUpResult;
      return { end: endOfResult(result), result };
    }
    const batchId = description.typedSearchAttributes.get(keywordKey('FollowUpBatch'));
    // The server schedules a child's first workflow task in a step of its own, and leaves it out if the page has been ended
    // by an operator in between: such a follow-up would run for ever. Any other one may have a start delay.
    if (batchId !== undefined && description.historyLength === 1)
      await handle.signal(SIGNAL_WAKE).catch(ignoreClosed);
    return { end: null, batchId };
  } catch (error) {
    if (error instanceof WorkflowFailedError) {
      const failure = error.cause ?? error;
      return { end: endOfFailure(failure), failure };
    }
    if (error instanceof WorkflowNotFoundError) return { end: endWithoutReceipt('gone') };
    if (grpcError(error) !== undefined) throw error;
    // Another program's memo, result or failure that can't be decoded never will be.
    const failure = error instanceof Error ? error : new Error(String(error));
    return { end: brokenEnd(`It can't be read: ${failure.message}`), failure };
  }
}

/** Compares what the follow-up was asked to send with what the item sends; null for the same. */
async function conflictOf(
  client: Client,
  { workflowId, promptDigest: wanted, isForeign }: NamedFollowUp,
  { type, memo, runId }: WorkflowExecutionDescription,
): Promise<EndOfItem | null> {
  if (type !== FOLLOW_UP_WORKFLOW) return endOfConflict(true, isForeign);
  const digest = memo?.[MEMO_PROMPT_DIGEST] ?? (await digestByInput(client, workflowId, runId));
  if (digest === wanted) return null;
  return endOfConflict(typeof digest === 'string', isForeign);
}

async function digestByInput(client: Client, workflowId: string, runId: string): Promise<string | undefined> {
  const run = await readInput(client, workflowId, runId);
  // It is being deleted: the description goes last.
  if (run === undefined) throw new WorkflowNotFoundError('its history is gone', workflowId, runId);
  const { input } = run;
  return isRecord(input) && typeof input.prompt === 'string' ? digestOf(input.prompt) : undefined;
}

/** A page closes with the next workflow task, unless a signal comes in meanwhile; so the intervals grow. */
const CLOSES_WITHIN_MS = 1_000;
const LONGEST_CLOSING_WAIT_MS = 60_000;

/** A page that has closed by itself has a result; the history of a terminated one proves which items it has started. */
export const earlierPage: FollowUpActivities['earlierPage'] = async (workflowId) => {
  const { client, info } = Context.current();
  const page = await describeWorkflow(client, workflowId);
  if (page?.type !== BATCH_PAGE_WORKFLOW) return null;
  const handle = client.workflow.getHandle(workflowId);
  const state = stateOf(page.status.name);
  if (state === 'completed') return (await handle.result()) as PageResult;
  if (state !== 'running') return pageByHistory(client, handle);
  // Its batch was terminated, and the page has not noticed yet.
  await handle.signal(SIGNAL_ALLOT, noPlaces('leave')).catch(ignoreClosed);
  const waitMs = Math.min(LONGEST_CLOSING_WAIT_MS, CLOSES_WITHIN_MS * 2 ** (info.attempt - 1));
  throw askAgainIn(waitMs, 'the page of the earlier run is closing');
};

/** A page starts an item by a child workflow, and by nothing else. */
async function pageByHistory(client: Client, handle: WorkflowHandle): Promise<EarlierPage | null> {
  const run = await readInput(client, handle.workflowId, '');
  if (!isRecord(run?.input)) return null;
  const { earlier } = run.input as unknown as PageInput;
  const before = earlier ? await earlierPage(earlier) : { ends: [], left: [] };
  const { events } = await handle.fetchHistory();
  // What a run did that was replaced by a reset is not in this history.
  const wasReset = events?.some((each) => each.workflowTaskFailedEventAttributes?.newRunId);
  if (before === null || wasReset) return null;
  const started = new Set(before.left);
  for (const each of events ?? []) {
    const id = each.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId;
    if (id) started.add(id);
  }
  return { ends: before.ends.filter((end) => !started.has(end.workflowId)), left: [...started] };
}

/** A page has to hear within minutes that its batch is gone; a look costs some milliseconds for each open follow-up. */
export const LOOK_EVERY_MS = 3 * 60_000;

/** A page with nothing open looks so many times less often: there may be thousands that wait for their turn, or are done. */
const IDLE_FACTOR = 4;

/** If a follow-up ended this long ago and its page still waits, the page has missed its end. */
const UNTOLD_MS = 60_000;

/** Costs neither the batch nor the page an event until there is something to report. */
export function pageTroubleEvery(lookEveryMs: number): FollowUpActivities['pageTrouble'] {
  return async ({ batchWorkflowId, run, known }) => {
    const { info, client } = Context.current();
    let nextMs = lookEveryMs;
    // When it has just been asked, nothing can have happened.
    if (info.attempt > 1) {
      const batchIsGone = batchWorkflowId !== null && (await isGone(client, batchWorkflowId, run));
      const { workflowId, runId } = ownRun();
      const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
      const children = raw.pendingChildren ?? [];
      if (children.length === 0) nextMs *= IDLE_FACTOR;
      const lost: string[] = [];
      for (const child of children) {
        const id = child.workflowId ?? '';
        if (!known.includes(id) && (await isLost(client, id, child.runId))) lost.push(id);
      }
      if (batchIsGone || lost.length > 0) return { batchIsGone, lost };
    }
    throw askAgainIn(nextMs, 'the batch and the open follow-ups are there');
  };
}

async function isGone(client: Client, batchWorkflowId: string, run: string): Promise<boolean> {
  const batch = await describeWorkflow(client, batchWorkflowId);
  return batch === null || runOf(firstRunOf(batch)) !== run || batch.closeTime !== undefined;
}

/** @param runId of the child; a child that is just being started has none */
async function isLost(client: Client, workflowId: string, runId?: string | null): Promise<boolean> {
  if (!runId) return false;
  const followUp = await describeWorkflow(client, workflowId);
  // Another one of the same name: the page's own is gone.
  if (followUp === null || firstRunOf(followUp) !== runId) return true;
  return followUp.closeTime !== undefined && Date.now() - followUp.closeTime.getTime() > UNTOLD_MS;
}
