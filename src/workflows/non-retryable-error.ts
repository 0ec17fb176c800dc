import { ApplicationFailure } from '@temporalio/workflow';
import { MAX_FAILURE_CHARACTERS, singleLine } from '../contract/text';

/** Every failure that a workflow makes. One that is too large for its event would fail the workflow's tasks for ever. */
export function nonRetryableError(
  type: string,
  message: string,
  ...details: readonly object[]
): ApplicationFailure {
  return ApplicationFailure.nonRetryable(singleLine(message, MAX_FAILURE_CHARACTERS), type, ...details);
}
