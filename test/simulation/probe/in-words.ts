import {
  ActivityFailure,
  ApplicationFailure,
  CancelledFailure,
  ChildWorkflowFailure,
  TimeoutFailure,
} from '@temporalio/common';

/** A failure and its causes, with all of it that a workflow may go by. */
export function inWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : ` < ${inWords(error.cause)}`;
  return `${error.name} ${JSON.stringify(error.message)}${said(error)}${cause}`;
}

function said(error: Error): string {
  const list = (details: readonly unknown[] | null | undefined) =>
    details?.length ? ` ${JSON.stringify(details)}` : '';
  if (error instanceof ActivityFailure || error instanceof ChildWorkflowFailure)
    return ` ${error.retryState}`;
  if (error instanceof TimeoutFailure) {
    const details: unknown = error.lastHeartbeatDetails;
    return ` ${error.timeoutType}${details === undefined ? '' : ` ${JSON.stringify(details)}`}`;
  }
  if (error instanceof ApplicationFailure) return list(error.details);
  return error instanceof CancelledFailure ? list(error.details) : '';
}
