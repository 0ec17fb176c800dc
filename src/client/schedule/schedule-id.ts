import { MAX_BATCH_ID_CHARACTERS } from '../../contract/batch-id';
import { batchWorkflowId } from '../../contract/workflow-id';

/** What Temporal appends to the workflow id of a firing: the time that it was due, to the second, in UTC. */
const EXAMPLE_SUFFIX = '-2006-01-02T15:04:05Z';

/** Characters of a schedule's id: 79, so that each firing's batch id has at most 100. */
export const MAX_SCHEDULE_ID_CHARACTERS = MAX_BATCH_ID_CHARACTERS - EXAMPLE_SUFFIX.length;

/**
 * Why a text is no id of a schedule; undefined where it is one: 1 to 79 letters, digits, `-`, `.`, `_`, `~`. It is part of
 * the ids of workflows, which Temporal's HTTP API can't carry with a slash in them, and nothing of it is ever encoded.
 */
export function scheduleIdProblem(scheduleId: string): string | undefined {
  if (scheduleId === '') return `must not be empty; give 1 to ${MAX_SCHEDULE_ID_CHARACTERS} characters`;
  const [other] = /[^A-Za-z0-9._~-]/u.exec(scheduleId) ?? [];
  if (other !== undefined)
    return `must be made of letters, digits, "-", ".", "_" and "~" only; it holds ${JSON.stringify(other)}`;
  if (scheduleId.length > MAX_SCHEDULE_ID_CHARACTERS)
    return `must have at most ${MAX_SCHEDULE_ID_CHARACTERS} characters, because the batch id of each firing is made of it and its time; it has ${scheduleId.length}`;
  return undefined;
}

/** The workflow id in a schedule's action; Temporal makes that of each firing of it and the time. */
export function actionWorkflowId(scheduleId: string): string {
  return batchWorkflowId(scheduleId);
}

/** A batch id as a firing will have, for checks of what is made of it. */
export function exampleBatchId(scheduleId: string): string {
  return `${scheduleId}${EXAMPLE_SUFFIX}`;
}

/** The id of the batch that a firing has started. */
export function batchIdOfFiring(workflowId: string): string {
  return workflowId.replace(/^follow-up-batch:/, '');
}
