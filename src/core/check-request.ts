import { FieldReader } from './field-reader';
import { isRecord, typeName } from './json';
import { followUpWorkflowId } from './ids';
import type { Problem } from './problem';
import type { FollowUpPlan, Polling } from './request';
import { REQUEST_OPTIONS } from './request-options';
import { MAX_WORKFLOW_ID_BYTES, quote } from './text';

type CheckedRequest =
  | { readonly ok: true; readonly plan: FollowUpPlan }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Checks the input of `followUp` and fills in its defaults. It is pure and shared: the starter runs it before anything
 * is started, and the workflow runs it on the input of any client.
 *
 * @param input what the caller gave, of any type
 * @param workflowId the workflow's id, or undefined if none exists yet. It names the follow-up if `requestId` is left out,
 *   and must be the derived one if `requestId` is given.
 * @returns the plan, or every problem at once
 */
export function checkRequest(input: unknown, workflowId?: string): CheckedRequest {
  if (!isRecord(input)) {
    const text = `must be one JSON object, a FollowUpRequest, not ${typeName(input)}`;
    return { ok: false, problems: [{ field: 'input', text }] };
  }
  const problems: Problem[] = [];
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
    const text = `must be more than the confirm time, or no status could hold long enough; it is ${deadlineMs} ms, the confirm time ${confirmMs} ms`;
    problems.push({ field: 'deadline', text });
  }
  if (problems.length === 0 && polling.maximumMs < polling.initialMs) {
    const text = `must not be below the initial interval; it is ${polling.maximumMs} ms, the initial interval ${polling.initialMs} ms`;
    problems.push({ field: 'polling.maximum', text });
  }
  const name = requestId ?? workflowId;
  if (name === undefined)
    problems.push({
      field: 'requestId',
      text: 'is missing; give the follow-up a name of 1 to 128 characters',
    });
  if (problems.length === 0 && requestId !== undefined) {
    const text = workflowIdProblem(followUpWorkflowId(projectId, jobId, requestId), workflowId);
    if (text !== undefined) problems.push({ field: 'requestId', text });
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

function workflowIdProblem(derived: string, given: string | undefined): string | undefined {
  // Percent-encoded, hence one byte a character.
  if (derived.length > MAX_WORKFLOW_ID_BYTES)
    return `the workflow id made of project, job and request id would be ${derived.length} bytes long; at most ${MAX_WORKFLOW_ID_BYTES} are possible, so shorten one of them`;
  if (given === undefined || given === derived) return undefined;
  return `its follow-up must have the workflow id ${quote(derived, MAX_SHOWN_ID)}; this workflow's id is ${quote(given, MAX_SHOWN_ID)}`;
}
