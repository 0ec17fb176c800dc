import { ApplicationFailure } from '@temporalio/workflow';
import { MAX_FAILURE_CHARACTERS, singleLine } from '../contract/text';

/**
 * Creates a failure of a workflow. All workflow code uses this function, because a failure that is too large for its event would
 * fail the workflow's tasks indefinitely.
 */
export function nonRetryableError(
  type: string,
  message: string,
  ...details: readonly object[]
): ApplicationFailure {
  return ApplicationFailure.nonRetryable(singleLine(message, MAX_FAILURE_CHARACTERS), type, ...details);
}
