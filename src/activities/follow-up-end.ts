import { Context } from '@temporalio/activity';
import {
  type Client,
  type WorkflowExecutionDescription,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { keywordKey } from '../client/description';
import { readFirstEvent } from '../client/first-input';
import { grpcError } from '../client/grpc-status';
import { promptDigest } from '../client/same-request';
import type { FollowUpActivities, FollowUpEndInput } from '../contract/activities';
import type { FoundEnd } from '../contract/batch-workflows';
import { truncate } from '../contract/bounds';
import { isRecord } from '../contract/field-reader';
import { FOLLOW_UP_WORKFLOW, MEMO_PROMPT_DIGEST, MEMO_RECEIPT } from '../contract/names';
import { askAgainIn } from './ask-again';

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
  const { cancelOf } = input;
  if (cancelOf === undefined) {
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * Context.current().info.attempt);
    throw askAgainIn(waitMs, 'the follow-up that was there already still runs');
  }
  const startedBy = description.typedSearchAttributes.get(keywordKey('FollowUpBatch'));
  if (startedBy !== cancelOf) return { kind: 'left-running' };
  await handle.cancel();
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
