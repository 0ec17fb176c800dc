import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { SearchAttributePair } from '@temporalio/common';
import { checkRequest } from '../core/check-request';
import { followUpWorkflowId } from '../core/ids';
import { FOLLOW_UP_WORKFLOW, followUpAttributes, followUpSummary, MEMO_PROMPT_DIGEST } from '../core/names';
import type { FollowUpPlan, FollowUpRequest } from '../core/request';
import { optionTexts } from '../core/request-options';
import { markdownCode as code, markdownTable, MAX_ATTRIBUTE_CHARACTERS, truncate } from '../core/text';
import {
  compareDigest,
  compareRequests,
  type FirstEvent,
  promptDigest,
  readFirstEvent,
} from '../temporal/existing-run';
import { inSetUpWords, keywordKey } from '../temporal/search-attributes';
import type { StartOfFollowUp } from './follow-up-handle';
import { InvalidRequestError, followUpNotFound, requestConflict } from './errors';

/** A request with a `requestId`: without one, a caller that repeats a start would send twice. */
export type NamedRequest = FollowUpRequest & { readonly requestId: string };

/** @throws InvalidRequestError with every problem of the request */
export function planOf(request: unknown): FollowUpPlan {
  const checked = checkRequest(request);
  if (!checked.ok) throw new InvalidRequestError(checked.problems);
  return checked.plan;
}

/**
 * Starts a follow-up, or attaches to the one of the same `requestId`, running or ended: the message is never sent again
 * by a repeated start.
 *
 * @throws InvalidRequestError, ConflictError, SearchAttributesError
 */
export async function startFollowUp(
  client: Client,
  taskQueue: string,
  request: NamedRequest,
): Promise<StartOfFollowUp> {
  const plan = planOf(request);
  const workflowId = followUpWorkflowId(plan.projectId, plan.jobId, plan.requestId);
  const found = { workflowId, requestId: plan.requestId };
  try {
    const { firstExecutionRunId: runId } = await client.workflow.start(FOLLOW_UP_WORKFLOW, {
      workflowId,
      taskQueue,
      args: [request],
      // Tells a new follow-up from one that is running. A repeated call of the SDK's is still the same start.
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      typedSearchAttributes: startAttributes(plan),
      memo: { [MEMO_PROMPT_DIGEST]: promptDigest(plan.prompt) },
      staticSummary: followUpSummary(plan),
      staticDetails: staticDetails(plan),
    });
    return { ...found, runId, attached: false, differences: [], promptCompared: true };
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError))
      throw inSetUpWords(error, client.options.namespace);
  }
  const { runId, closeTime } = await client.workflow.getHandle(workflowId).describe();
  // A paused follow-up has not ended either.
  const attached = closeTime === undefined ? 'running' : 'ended';
  const event = await readFirstEvent(client, workflowId, runId);
  return { ...found, runId, attached, ...(await compare(client, plan, workflowId, event)) };
}

async function compare(
  client: Client,
  plan: FollowUpPlan,
  workflowId: string,
  event: FirstEvent | undefined,
): Promise<Pick<StartOfFollowUp, 'differences' | 'promptCompared'>> {
  if (event !== undefined && event.workflowType !== FOLLOW_UP_WORKFLOW) {
    throw followUpNotFound(workflowId, client.options.namespace, event.workflowType);
  }
  let comparison = compareRequests(plan, event?.input);
  if (comparison.samePrompt === 'unknown' && event !== undefined) {
    // A run that was continued as new holds no message; the first run of its chain does.
    const first = await readFirstEvent(client, workflowId, event.firstRunId);
    comparison = compareRequests(plan, first?.input);
  }
  if (comparison.samePrompt === 'unknown') {
    const { memo } = await client.workflow.getHandle(workflowId).describe();
    comparison = compareDigest(plan, memo);
  }
  if (comparison.samePrompt === false) throw requestConflict(plan.requestId, workflowId);
  return comparison.samePrompt === true
    ? { differences: comparison.differences, promptCompared: true }
    : { differences: [], promptCompared: false };
}

/** The options of a follow-up, as the Web UI shows them from its start on. The prompt is described, never shown. */
export function staticDetails(plan: FollowUpPlan): string {
  const rows: [string, string][] = [
    ['projectId', code(plan.projectId)],
    ['jobId', code(plan.jobId)],
    ['requestId', code(plan.requestId)],
    ['prompt', describePrompt(plan.prompt)],
    ...optionTexts(plan),
  ];
  return markdownTable(rows);
}

/** The attributes with which a follow-up is started. */
export function startAttributes(plan: FollowUpPlan): SearchAttributePair[] {
  return followUpAttributes(plan).map(([name, text]) => ({ key: keywordKey(name), value: attribute(text) }));
}

/** A text as a search attribute holds it. */
export function attribute(text: string): string {
  return truncate(text, MAX_ATTRIBUTE_CHARACTERS);
}

/** Enough of the digest to tell two prompts apart by eye. */
function describePrompt(prompt: string): string {
  return `${Buffer.byteLength(prompt)} bytes, sha256 ${code(promptDigest(prompt).slice(0, 12))}…`;
}
