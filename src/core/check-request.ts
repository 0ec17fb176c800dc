import { FieldReader } from './field-reader';
import { isRecord, typeName } from './json';
import { followUpWorkflowId } from './ids';
import type { FollowUpPlan, Polling } from './request';
import { REQUEST_OPTIONS } from './request-options';
import { MAX_WORKFLOW_ID_BYTES, quote } from './text';

type CheckedRequest =
  | { readonly ok: true; readonly plan: FollowUpPlan }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Checks the input of `followUp` and fills in its defaults. It is pure and shared: the starter runs it before anything
 * is started, and the workflow runs it on the input of any client.
 *
 * @param input what the caller gave, of any type
 * @param workflowId the workflow's id, or undefined if none exists yet. It names the follow-up if `requestId` is left out,
 *   and must be the derived one if `requestId` is given.
 * @returns the plan, or every problem at once, each of which names its field, what is wrong and what is right.
 */
export function checkRequest(input: unknown, workflowId?: string): CheckedRequest {
  if (!isRecord(input)) {
    return {
      ok: false,
      problems: [`input: must be one JSON object, a FollowUpRequest, not ${typeName(input)}`],
    };
  }
  const problems: string[] = [];
  const field = new FieldReader(input, '', problems);
  const projectId = field.id('projectId');
  const jobId = field.id('jobId');
  const prompt = field.prompt('prompt');
  const requestId = field.has('requestId') ? field.id('requestId') : undefined;
  const whenActive = field.choice('whenActive', REQUEST_OPTIONS.whenActive);
  const onUnknownDelivery = field.choice('onUnknownDelivery', REQUEST_OPTIONS.onUnknownDelivery);
  const deadlineMs = field.duration('deadline', REQUEST_OPTIONS.deadline);
  const reconcileMs = field.duration('reconcile', REQUEST_OPTIONS.reconcile);
  const settleMs = field.duration('settle', REQUEST_OPTIONS.settle);
  const confirmMs = field.duration('confirm', REQUEST_OPTIONS.confirm);

  const cadence = field.object('polling');
  const polling: Polling = {
    initialMs: cadence.duration('initial', REQUEST_OPTIONS['polling.initial']),
    growth: cadence.number('growth', REQUEST_OPTIONS['polling.growth']),
    maximumMs: cadence.duration('maximum', REQUEST_OPTIONS['polling.maximum']),
    jitter: cadence.number('jitter', REQUEST_OPTIONS['polling.jitter']),
    timerPolls: cadence.count('timerPolls', REQUEST_OPTIONS['polling.timerPolls']),
  };
  cadence.refuseOthers();
  field.refuseOthers();

  if (problems.length === 0 && deadlineMs <= confirmMs) {
    problems.push(
      `deadline: must be more than confirm, or no status could hold long enough; deadline is ${deadlineMs} ms, confirm ${confirmMs} ms`,
    );
  }
  if (problems.length === 0 && polling.maximumMs < polling.initialMs) {
    problems.push(
      `polling.maximum: must not be below polling.initial; maximum is ${polling.maximumMs} ms, initial ${polling.initialMs} ms`,
    );
  }
  const name = requestId ?? workflowId;
  if (name === undefined)
    problems.push('requestId: is missing; give the follow-up a name of 1 to 128 characters');
  if (problems.length === 0 && requestId !== undefined) {
    problems.push(...workflowIdProblems(followUpWorkflowId(projectId, jobId, requestId), workflowId));
  }
  if (problems.length > 0 || name === undefined) return { ok: false, problems };

  const times = { deadlineMs, reconcileMs, settleMs, confirmMs };
  const plan = {
    projectId,
    jobId,
    prompt,
    requestId: name,
    whenActive,
    onUnknownDelivery,
    polling,
    ...times,
  };
  return { ok: true, plan };
}

/** Characters of an id in a message: a derived id fits. */
const MAX_SHOWN_ID = MAX_WORKFLOW_ID_BYTES;

function workflowIdProblems(derived: string, given: string | undefined): string[] {
  // Percent-encoded, hence one byte a character.
  if (derived.length > MAX_WORKFLOW_ID_BYTES) {
    return [
      `requestId: the workflow id made of projectId, jobId and requestId would be ${derived.length} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so shorten one of them`,
    ];
  }
  if (given === undefined || given === derived) return [];
  return [
    `requestId: the follow-up of this requestId must have the workflow id ${quote(derived, MAX_SHOWN_ID)}; this workflow's id is ${quote(given, MAX_SHOWN_ID)}`,
  ];
}
