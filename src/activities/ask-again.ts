import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { NO_CHANGE } from '../contract/names';

/** The failure by which an activity asks the server for its next attempt: between the two it takes no slot of a worker. */
export function askAgainIn(waitMs: number, message: string): ApplicationFailure {
  return ApplicationFailure.create({
    type: NO_CHANGE,
    message,
    nonRetryable: false,
    category: ApplicationFailureCategory.BENIGN,
    nextRetryDelay: waitMs,
  });
}
