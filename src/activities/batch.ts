import { Context } from '@temporalio/activity';
import {
  type Client,
  type WorkflowExecutionDescription,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { keywordKey } from '../temporal/search-attributes';
import { promptDigest, readFirstEvent } from '../temporal/existing-run';
import type { FollowUpActivities, NamedFollowUp } from '../core/activities';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  type EarlierPage,
  type PageInput,
  type PageResult,
  SIGNAL_ALLOT,
} from '../core/batch-workflows';
import { isRecord } from '../core/json';
import { followUpWorkflowId, runOf } from '../core/ids';
import { type EndOfItem, requestIdOf } from '../core/batch';
import {
  brokenEnd,
  endOfCancelled,
  endOfConflict,
  endOfFailure,
  endOfResult,
  endWithoutReceipt,
} from '../core/batch-item-end';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST, MEMO_RECEIPT, NO_CHANGE, SIGNAL_WAKE } from '../core/names';
import { grpcError } from '../temporal/grpc-status';

/** The failure by which an activity asks the server for its next attempt: between the two it takes no slot of a worker. */
function askAgainIn(waitMs: number, message: string): ApplicationFailure {
  return ApplicationFailure.create({
    type: NO_CHANGE,
    message,
    nonRetryable: false,
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: waitMs,
  });
}

/** How soon a follow-up that runs is asked for again: soon at first, as most of a resumed batch have ended. */
const FIRST_WAIT_MS = 5_000;
const LONGEST_WAIT_MS = 5 * 60_000;

/** A cancelled follow-up ends when its POST under way is answered. */
const CANCELLED_WAIT_MS = 1_000;

/** The activity `followUpEnds`: one question for each. */
export const followUpEnds: FollowUpActivities['followUpEnds'] = (followUps) => {
  const { client } = Context.current();
  return Promise.all(followUps.map(async (each) => (await look(client, each)).end));
};

/**
 * The activity `followUpEnd`: how a follow-up has ended that the batch has found. A running one is asked for by retries, so
 * that a thousand of them take no slot of a worker while they wait.
 */
export const followUpEnd: FollowUpActivities['followUpEnd'] = async ({ cancelOf, ...followUp }) => {
  const { client, info } = Context.current();
  const { end, batchId } = await look(client, followUp);
  if (end !== null) return end;
  if (cancelOf === undefined) {
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * info.attempt);
    throw askAgainIn(waitMs, 'the follow-up still runs');
  }
  if (batchId !== cancelOf) return endWithoutReceipt('left-running');
  await client.workflow.getHandle(followUp.workflowId).cancel().catch(ignoreClosed);
  throw askAgainIn(CANCELLED_WAIT_MS, 'the follow-up is being cancelled');
};

interface Look {
  /** Null while it runs. */
  readonly end: EndOfItem | null;
  /** The batch that has started it. */
  readonly batchId?: string | undefined;
}

async function look(client: Client, followUp: NamedFollowUp): Promise<Look> {
  try {
    return await lookAt(client, followUp);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { end: endWithoutReceipt('gone') };
    if (grpcError(error) !== undefined) throw error;
    // Another program's memo, result or failure that can't be decoded never will be.
    const words = error instanceof Error ? error.message : String(error);
    return { end: brokenEnd(`It can't be read: ${words}`) };
  }
}

async function lookAt(client: Client, followUp: NamedFollowUp): Promise<Look> {
  const handle = client.workflow.getHandle(followUp.workflowId);
  const description = await handle.describe();
  const conflict = await conflictOf(client, followUp, description);
  if (conflict !== null) return { end: conflict };
  switch (description.status.name) {
    case 'COMPLETED':
    case 'FAILED':
      return { end: await endOfClosed(client, followUp.workflowId) };
    case 'CANCELLED':
      return { end: endOfCancelled(description.memo?.[MEMO_RECEIPT]) };
    case 'TERMINATED':
      return { end: endWithoutReceipt('terminated') };
    case 'TIMED_OUT':
      return { end: endWithoutReceipt('timed-out') };
    default:
  }
  // The server schedules a child's first workflow task in a step of its own, and leaves it out if the page has been ended
  // by an operator in between: such a follow-up would run for ever.
  if (description.historyLength === 1) await handle.signal(SIGNAL_WAKE).catch(ignoreClosed);
  return { end: null, batchId: description.typedSearchAttributes.get(keywordKey('FollowUpBatch')) };
}

/** Compares what the follow-up was asked to send with what the item sends; null for the same. */
async function conflictOf(
  client: Client,
  { workflowId, promptDigest: wanted }: NamedFollowUp,
  { type, memo, runId }: WorkflowExecutionDescription,
): Promise<EndOfItem | null> {
  if (type !== FOLLOW_UP_WORKFLOW) return endOfConflict(true);
  const digest = memo?.[MEMO_PROMPT_DIGEST] ?? (await digestOfFirstEvent(client, workflowId, runId));
  if (digest === wanted) return null;
  return endOfConflict(typeof digest === 'string');
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
  return isRecord(input) && typeof input.prompt === 'string' ? promptDigest(input.prompt) : undefined;
}

async function endOfClosed(client: Client, workflowId: string): Promise<EndOfItem> {
  try {
    return endOfResult(await client.workflow.getHandle(workflowId).result());
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { cause } = error;
    const message = cause?.message ?? error.message;
    if (!(cause instanceof ApplicationFailure)) return brokenEnd(message);
    return endOfFailure(cause.type ?? '', message, cause.details?.[0]);
  }
}

const LEAVE: Allotment = { places: 0, tolerated: null, mode: 'leave' };

/**
 * A page closes with the next workflow task, unless a signal comes in meanwhile: so a page that is slow to close is told
 * again at longer and longer intervals.
 */
const CLOSES_WITHIN_MS = 1_000;
const LONGEST_CLOSING_WAIT_MS = 60_000;

/**
 * The activity `earlierPage`: what an earlier run of a batch has done with the items of a page. A page that has closed by
 * itself says so in its result; of one that was terminated, the history proves which items it has started.
 */
export const earlierPage: FollowUpActivities['earlierPage'] = (workflowId) =>
  pageAsItWas(Context.current().client, workflowId);

async function pageAsItWas(client: Client, workflowId: string): Promise<EarlierPage | null> {
  const handle = client.workflow.getHandle(workflowId);
  try {
    const { status, type } = await handle.describe();
    if (type !== BATCH_PAGE_WORKFLOW) return null;
    if (status.name === 'RUNNING') {
      // Its batch was terminated, and it has not heard of it yet.
      await handle.signal(SIGNAL_ALLOT, LEAVE).catch(ignoreClosed);
      const waitMs = Math.min(
        LONGEST_CLOSING_WAIT_MS,
        CLOSES_WITHIN_MS * 2 ** (Context.current().info.attempt - 1),
      );
      throw askAgainIn(waitMs, 'the page of the earlier run has been told to close');
    }
    if (status.name === 'COMPLETED') {
      const { ends, left } = (await handle.result()) as PageResult;
      return { ends, left };
    }
    return await pageByHistory(client, workflowId);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

function ignoreClosed(error: unknown): void {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
}

/** A page starts an item by a child workflow, and by nothing else. */
async function pageByHistory(client: Client, workflowId: string): Promise<EarlierPage | null> {
  const event = await readFirstEvent(client, workflowId, '');
  if (!isRecord(event?.input)) return null;
  const { batchId, page, earlier } = event.input as unknown as PageInput;
  const before = earlier ? await pageAsItWas(client, earlier) : { ends: [], left: [] };
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const wasReset = (events ?? []).some((each) => each.workflowTaskFailedEventAttributes?.newRunId);
  const started = new Set(before?.left);
  for (const each of events ?? []) {
    const id = each.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId;
    if (id) started.add(id);
  }
  // What a run did that was replaced by a reset is not in this history.
  if (wasReset || before === null) {
    for (const item of page.items) {
      const { projectId, jobId } = item.request;
      started.add(followUpWorkflowId(projectId, jobId, requestIdOf(batchId, item)));
    }
  }
  return { ends: (before?.ends ?? []).filter((end) => !started.has(end.workflowId)), left: [...started] };
}

/** A page has to hear within minutes that its batch is gone; a look costs some milliseconds for each open follow-up. */
export const LOOK_EVERY_MS = 3 * 60_000;

/** A page with nothing open looks so many times less often: there may be thousands that wait for their turn, or are done. */
const IDLE_FACTOR = 4;

/** If a follow-up ended this long ago and its page still waits, the page has missed its end. */
const UNTOLD_MS = 60_000;

type Pending = NonNullable<WorkflowExecutionDescription['raw']['pendingChildren']>[number];

/**
 * The activity `pageTrouble`: what happened to a page's batch and to its follow-ups that no event tells the page of. It
 * asks the server, and costs neither the batch nor the page an event until there is something to tell.
 */
export function pageTroubleEvery(lookEveryMs: number): FollowUpActivities['pageTrouble'] {
  return async ({ batchWorkflowId, run, known }) => {
    const { info, client } = Context.current();
    let nextMs = lookEveryMs;
    // When it has just been asked, nothing can have happened.
    if (info.attempt > 1) {
      const batchIsGone = batchWorkflowId !== null && (await isGone(client, batchWorkflowId, run));
      const { workflowId, runId } = info.workflowExecution ?? { workflowId: '', runId: '' };
      const { raw } = await client.workflow.getHandle(workflowId, runId).describe();
      const children = raw.pendingChildren ?? [];
      if (children.length === 0) nextMs *= IDLE_FACTOR;
      const lost: string[] = [];
      for (const child of children) {
        const id = child.workflowId ?? '';
        if (!known.includes(id) && (await isLost(client, id, child))) lost.push(id);
      }
      if (batchIsGone || lost.length > 0) return { batchIsGone, lost };
    }
    throw askAgainIn(nextMs, 'the batch and the open follow-ups are there');
  };
}

async function isGone(client: Client, batchWorkflowId: string, run: string): Promise<boolean> {
  const batch = await describe(client, batchWorkflowId);
  if (batch === null) return true;
  const firstRunId = batch.raw.workflowExecutionInfo?.firstRunId ?? batch.runId;
  return runOf(firstRunId) !== run || batch.closeTime !== undefined;
}

async function isLost(client: Client, workflowId: string, { runId }: Pending): Promise<boolean> {
  // It is just being started.
  if (!runId) return false;
  const followUp = await describe(client, workflowId);
  if (followUp === null) return true;
  // Another one of the same name: the page's own is gone.
  if ((followUp.raw.workflowExecutionInfo?.firstRunId ?? followUp.runId) !== runId) return true;
  return followUp.closeTime !== undefined && Date.now() - followUp.closeTime.getTime() > UNTOLD_MS;
}

async function describe(client: Client, workflowId: string): Promise<WorkflowExecutionDescription | null> {
  try {
    return await client.workflow.getHandle(workflowId).describe();
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}
