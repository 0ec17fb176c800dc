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
import {
  describeWorkflow,
  firstRunOf,
  ignoreClosed,
  readFirstEvent,
  type RunState,
  stateOf,
} from '../temporal/existing-run';
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
} from '../core/batch/batch';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST, MEMO_RECEIPT, SIGNAL_WAKE } from '../core/names';
import { grpcError } from '../temporal/grpc-status';
import { askAgainIn, ownRun } from './attempt';

/** How soon a follow-up that runs is asked for again: soon at first, as most of a resumed batch have ended. */
const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 5 * 60_000;

/** A cancelled follow-up ends when its POST under way is answered. */
const CANCELLED_WAIT_MS = 1_000;

export const followUpEnds: FollowUpActivities['followUpEnds'] = (followUps) => {
  const { client } = Context.current();
  return Promise.all(followUps.map(async (each) => (await look(client, each)).end));
};

export const followUpEnd: FollowUpActivities['followUpEnd'] = async ({ cancelOf, ...followUp }) => {
  const { client, info } = Context.current();
  const looked = await look(client, followUp);
  if (looked.end !== null) return looked.end;
  if (cancelOf === undefined) {
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * info.attempt);
    throw askAgainIn(waitMs, 'the follow-up still runs');
  }
  if (looked.batchId !== cancelOf) return endWithoutReceipt('left-running');
  await client.workflow.getHandle(followUp.workflowId).cancel().catch(ignoreClosed);
  throw askAgainIn(CANCELLED_WAIT_MS, 'the follow-up is being cancelled');
};

/** For a workflow of somebody else: the first question comes soon, as many have ended; then it may take hours. */
const FIRST_RESULT_WAIT_MS = 2_000;
const LONGEST_RESULT_WAIT_MS = 60_000;

/** Ends without a failure from the workflow itself. */
const TYPES: Partial<Record<RunState, string>> = {
  cancelled: 'FollowUpCancelled',
  terminated: 'FollowUpTerminated',
  'timed-out': 'FollowUpTimedOut',
};

export const followUpResult: FollowUpActivities['followUpResult'] = async (followUp) => {
  const { client, info } = Context.current();
  const handle = client.workflow.getHandle(followUp.workflowId);
  try {
    const description = await handle.describe();
    const conflict = await conflictOf(client, followUp, description);
    if (conflict !== null) throw ended('FollowUpConflict', conflict.message ?? '');
    const state = stateOf(description.status.name);
    if (state === 'running') {
      const waitMs = Math.min(LONGEST_RESULT_WAIT_MS, FIRST_RESULT_WAIT_MS * info.attempt);
      throw askAgainIn(waitMs, 'the follow-up still runs');
    }
    const type = TYPES[state];
    if (type !== undefined) throw ended(type, `The follow-up ended as ${state}.`);
    return (await handle.result()) as FollowUpResult;
  } catch (error) {
    if (error instanceof WorkflowFailedError) throw error.cause ?? error;
    if (error instanceof WorkflowNotFoundError)
      throw ended('FollowUpNotFound', 'The follow-up no longer exists.');
    throw error;
  }
};

const ended = (type: string, message: string) => ApplicationFailure.nonRetryable(message, type);

/** How it has ended, or null and the batch that has started it. */
type Look = { readonly end: EndOfItem } | { readonly end: null; readonly batchId: string | undefined };

async function look(client: Client, followUp: NamedFollowUp): Promise<Look> {
  const handle = client.workflow.getHandle(followUp.workflowId);
  try {
    const description = await handle.describe();
    const conflict = await conflictOf(client, followUp, description);
    if (conflict !== null) return { end: conflict };
    const state = stateOf(description.status.name);
    if (state === 'terminated' || state === 'timed-out') return { end: endWithoutReceipt(state) };
    if (state === 'cancelled') return { end: endOfCancelled(description.memo?.[MEMO_RECEIPT]) };
    if (state !== 'running') return { end: endOfResult(await handle.result()) };
    // The server schedules a child's first workflow task in a step of its own, and leaves it out if the page has been ended
    // by an operator in between: such a follow-up would run for ever.
    if (description.historyLength === 1) await handle.signal(SIGNAL_WAKE).catch(ignoreClosed);
    return { end: null, batchId: description.typedSearchAttributes.get(keywordKey('FollowUpBatch')) };
  } catch (error) {
    if (error instanceof WorkflowFailedError) return { end: endOfFailure(error.cause ?? error) };
    if (error instanceof WorkflowNotFoundError) return { end: endWithoutReceipt('gone') };
    if (grpcError(error) !== undefined) throw error;
    // Another program's memo, result or failure that can't be decoded never will be.
    const words = error instanceof Error ? error.message : String(error);
    return { end: brokenEnd(`It can't be read: ${words}`) };
  }
}

/** Compares what the follow-up was asked to send with what the item sends; null for the same. */
async function conflictOf(
  client: Client,
  { workflowId, promptDigest: wanted, isForeign }: NamedFollowUp,
  { type, memo, runId }: WorkflowExecutionDescription,
): Promise<EndOfItem | null> {
  if (type !== FOLLOW_UP_WORKFLOW) return endOfConflict(true, isForeign);
  const digest = memo?.[MEMO_PROMPT_DIGEST] ?? (await digestOfFirstEvent(client, workflowId, runId));
  if (digest === wanted) return null;
  return endOfConflict(typeof digest === 'string', isForeign);
}

/** A run that was continued as new holds no message; the first run of its chain does. */
async function digestOfFirstEvent(client: Client, workflowId: string, runId: string): Promise<unknown> {
  const event = await readFirstEvent(client, workflowId, runId);
  // It is being deleted: the description goes last.
  if (event === undefined) throw new WorkflowNotFoundError('its history is gone', workflowId, runId);
  const own = promptOf(event.input);
  if (own !== undefined || event.firstRunId === runId) return own;
  return promptOf((await readFirstEvent(client, workflowId, event.firstRunId))?.input);
}

function promptOf(input: unknown): string | undefined {
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
  const event = await readFirstEvent(client, handle.workflowId, '');
  if (!isRecord(event?.input)) return null;
  const { earlier } = event.input as unknown as PageInput;
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
