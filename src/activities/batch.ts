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
import type { FollowUpActivities, FollowUpEndInput } from '../core/activities';
import {
  type Allotment,
  BATCH_PAGE_WORKFLOW,
  type EarlierPage,
  type FoundEnd,
  type PageInput,
  type PageResult,
  SIGNAL_ALLOT,
} from '../core/batch-workflows';
import { isRecord } from '../core/json';
import { followUpWorkflowId, runOf } from '../core/ids';
import { requestIdOf } from '../core/batch';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST, MEMO_RECEIPT, NO_CHANGE, SIGNAL_WAKE } from '../core/names';
import { truncate } from '../core/text';
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

/** Characters of a failure's message and of what a result holds as JSON: another program's may be of any length. */
const MAX_MESSAGE_CHARACTERS = 1_000;
const MAX_RESULT_CHARACTERS = 65_536;

/**
 * The activity `followUpEnd`: how a follow-up has ended that was there before the batch that wants it. A running one is
 * asked for by retries, so that a thousand of them take no slot of a worker while they wait.
 */
export const followUpEnd: FollowUpActivities['followUpEnd'] = async (input) => {
  const { client } = Context.current();
  try {
    return await endOf(client, input);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'not-found' };
    if (error instanceof ApplicationFailure || grpcError(error) !== undefined) throw error;
    // Another program's memo, result or failure that can't be decoded never will be.
    const message = `It can't be read: ${error instanceof Error ? error.message : String(error)}`;
    return { kind: 'failure', type: '', message: truncate(message, MAX_MESSAGE_CHARACTERS), details: null };
  }
};

async function endOf(client: Client, input: FollowUpEndInput): Promise<FoundEnd> {
  const handle = client.workflow.getHandle(input.workflowId);
  const description = await handle.describe();
  const conflict = await conflictOf(client, input, description);
  if (conflict !== null) return conflict;
  switch (description.status.name) {
    case 'COMPLETED':
    case 'FAILED':
      return endOfClosed(client, input.workflowId);
    case 'CANCELLED':
      return { kind: 'cancelled', receipt: bounded(description.memo?.[MEMO_RECEIPT]) };
    case 'TERMINATED':
      return { kind: 'terminated' };
    case 'TIMED_OUT':
      return { kind: 'timed-out' };
    default:
  }
  // The server schedules a child's first workflow task in a step of its own, and leaves it out if the page has been ended
  // by an operator in between: such a follow-up would run for ever.
  if (description.historyLength === 1) await handle.signal(SIGNAL_WAKE).catch(ignoreClosed);
  const { cancelOf } = input;
  if (cancelOf === undefined) {
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * Context.current().info.attempt);
    throw askAgainIn(waitMs, 'the follow-up that was there already still runs');
  }
  const startedBy = description.typedSearchAttributes.get(keywordKey('FollowUpBatch'));
  if (startedBy !== cancelOf) return { kind: 'left-running' };
  await handle.cancel().catch(ignoreClosed);
  throw askAgainIn(CANCELLED_WAIT_MS, 'the follow-up is being cancelled');
}

/** Compares what the follow-up was asked to send with what the item sends; null for the same. */
async function conflictOf(
  client: Client,
  { workflowId, promptDigest: wanted }: FollowUpEndInput,
  { type, memo, runId }: WorkflowExecutionDescription,
): Promise<FoundEnd | null> {
  if (type !== FOLLOW_UP_WORKFLOW) return { kind: 'conflict', compared: true };
  const digest = memo?.[MEMO_PROMPT_DIGEST] ?? (await digestOfFirstEvent(client, workflowId, runId));
  if (digest === wanted) return null;
  return { kind: 'conflict', compared: typeof digest === 'string' };
}

/** A run that was continued as new holds no message; the first run of its chain does. */
async function digestOfFirstEvent(client: Client, workflowId: string, runId: string): Promise<unknown> {
  const event = await readFirstEvent(client, workflowId, runId);
  const own = promptOf(event?.input);
  if (own !== undefined || event === undefined || event.firstRunId === runId) return own;
  return promptOf((await readFirstEvent(client, workflowId, event.firstRunId))?.input);
}

function promptOf(input: unknown): string | undefined {
  return isRecord(input) && typeof input.prompt === 'string' ? promptDigest(input.prompt) : undefined;
}

async function endOfClosed(client: Client, workflowId: string): Promise<FoundEnd> {
  try {
    return { kind: 'result', result: bounded(await client.workflow.getHandle(workflowId).result()) };
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    const { cause } = error;
    const message = truncate(cause?.message ?? error.message, MAX_MESSAGE_CHARACTERS);
    if (!(cause instanceof ApplicationFailure)) return { kind: 'failure', type: '', message, details: null };
    return { kind: 'failure', type: cause.type ?? '', message, details: bounded(cause.details?.[0]) };
  }
}

/** Another program's value may not fit into the history of the page. */
function bounded(value: unknown): unknown {
  const json = JSON.stringify(value) as string | undefined;
  return json === undefined || json.length > MAX_RESULT_CHARACTERS ? null : value;
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
  const { batchId, page, earlier, inDoubt } = event.input as unknown as PageInput;
  const before = earlier ? await pageAsItWas(client, earlier) : { ends: [], left: [] };
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const wasReset = (events ?? []).some((each) => each.workflowTaskFailedEventAttributes?.newRunId);
  const started = new Set(before?.left);
  for (const each of events ?? []) {
    const id = each.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId;
    if (id) started.add(id);
  }
  // What a run did that was replaced by a reset is not in this history.
  if (wasReset || inDoubt === true || before === null) {
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
