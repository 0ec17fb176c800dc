import type { ChildWorkflowFailure } from '@temporalio/workflow';
import {
  ApplicationFailure,
  CancelledFailure,
  TerminatedFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { ItemEnd, ItemOutcome } from '../../contract/batch';
import type { FoundEnd } from '../../contract/batch-workflows';
import { truncate } from '../../contract/bounds';
import { isRecord } from '../../contract/field-reader';
import { isTerminal } from '../../contract/job';
import {
  FAILURE_TYPES,
  type FailureDetails,
  type FailureType,
  type FollowUpResult,
  type Receipt,
} from '../../contract/result';

/** Characters of a failure's message in a page: 200 of them lie in one payload. */
const MAX_MESSAGE_CHARACTERS = 300;

/** What an end tells, without the item that ended. */
export type EndOfItem = Pick<ItemEnd, 'outcome' | 'delivery' | 'evidence' | 'prLink' | 'message'>;

export function endOfResult(result: FollowUpResult): EndOfItem {
  const { status, prLink, followUp } = result;
  // A follow-up ends by a terminal status only.
  const outcome = isTerminal(status) ? status : 'broken';
  return { outcome, delivery: followUp.delivery.verdict, evidence: followUp.evidence, prLink, message: null };
}

/** The end of a child that failed; null for one that was cancelled, whose receipt only the server has. */
export function endOfFailedChild(error: ChildWorkflowFailure): EndOfItem | null {
  const { cause } = error;
  if (cause instanceof CancelledFailure) return null;
  if (cause instanceof TerminatedFailure) return without('terminated', 'Somebody terminated the follow-up.');
  if (cause instanceof TimeoutFailure) return without('timed-out', 'The workflow ran into its time limit.');
  if (cause instanceof ApplicationFailure) {
    return endOfFailure(cause.type ?? '', cause.message, cause.details?.[0]);
  }
  return without('broken', cause?.message ?? error.message);
}

/** The end of a follow-up that was there before its batch. */
export function endOfFound(found: FoundEnd): EndOfItem {
  switch (found.kind) {
    case 'result':
      return endOfResult(found.result as FollowUpResult);
    case 'failure':
      return endOfFailure(found.type, found.message, found.details);
    case 'cancelled': {
      const receipt = found.receipt as Receipt | null;
      return {
        ...without('cancelled', 'Somebody cancelled the follow-up.'),
        delivery: receipt?.delivery.verdict ?? null,
        evidence: receipt?.evidence ?? null,
      };
    }
    case 'terminated':
      return without('terminated', 'Somebody terminated the follow-up.');
    case 'timed-out':
      return without('timed-out', 'The workflow ran into its time limit.');
    case 'conflict':
      return {
        ...without(
          'conflict',
          'A follow-up of this name carries another prompt; nothing was sent for this item.',
        ),
        delivery: 'not-sent',
      };
  }
}

/** The end of an item that could not even be started. */
export function brokenEnd(message: string): EndOfItem {
  return without('broken', message);
}

function endOfFailure(type: string, message: string, details: unknown): EndOfItem {
  const words = truncate(message, MAX_MESSAGE_CHARACTERS);
  const known = FAILURE_TYPES.find((each): each is FailureType => each === type);
  if (known === undefined || !isRecord(details)) return without('broken', words);
  const { job, followUp } = details as unknown as FailureDetails;
  const { delivery, evidence } = followUp;
  const prLink = job?.prLink ?? null;
  return { outcome: known, delivery: delivery.verdict, evidence, prLink, message: words };
}

function without(outcome: ItemOutcome, message: string): EndOfItem {
  return {
    outcome,
    delivery: null,
    evidence: null,
    prLink: null,
    message: truncate(message, MAX_MESSAGE_CHARACTERS),
  };
}
