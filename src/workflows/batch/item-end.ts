import {
  type ChildWorkflowFailure,
  ApplicationFailure,
  CancelledFailure,
  TerminatedFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { ItemEnd, ItemOutcome } from '../../core/batch';
import type { FoundEnd } from '../../core/batch-workflows';
import { MAX_LINK_CHARACTERS, truncate } from '../../core/text';
import { type Evidence, FAILURE_TYPES, type Verdict } from '../../core/result';
import { isRecord } from '../../core/json';
import { isTerminal } from '../../core/job';

/** Characters of a failure's message in a page: those of all its items lie in one payload, its result. */
const MAX_MESSAGE_CHARACTERS = 300;

/** An end without its item. */
export type EndOfItem = Pick<ItemEnd, 'outcome' | 'delivery' | 'evidence' | 'prLink' | 'message'>;

/** The end by a result. It is looked at, because the workflow of this name may be another program's. */
export function endOfResult(result: unknown): EndOfItem {
  const { status, prLink, followUp } = isRecord(result) ? result : {};
  const { delivery, evidence } = receiptOf(followUp);
  if (typeof status !== 'string' || !isTerminal(status) || delivery === null)
    return without('broken', 'Its result is no job with a receipt.');
  return { outcome: status, delivery, evidence, prLink: linkOf(prLink), message: null };
}

/** The end of a child that failed; null for one that was cancelled, whose receipt only the server has. */
export function endOfFailedChild(error: ChildWorkflowFailure): EndOfItem | null {
  const { cause } = error;
  if (cause instanceof CancelledFailure) return null;
  if (cause instanceof TerminatedFailure) return endOfFound({ kind: 'terminated' });
  if (cause instanceof TimeoutFailure) return endOfFound({ kind: 'timed-out' });
  if (cause instanceof ApplicationFailure) {
    return endOfFailure(cause.type ?? '', cause.message, cause.details?.[0]);
  }
  return without('broken', cause?.message ?? error.message);
}

/** The end of a follow-up as the server knows it. */
export function endOfFound(found: FoundEnd): EndOfItem {
  switch (found.kind) {
    case 'result':
      return endOfResult(found.result);
    case 'failure':
      return endOfFailure(found.type, found.message, found.details);
    case 'cancelled':
      return { ...without('cancelled', 'Somebody cancelled the follow-up.'), ...receiptOf(found.receipt) };
    case 'terminated':
      return without('terminated', 'Somebody terminated the follow-up.');
    case 'timed-out':
      return without('timed-out', 'The workflow ran into its time limit.');
    case 'not-found':
      return without(
        'gone',
        'Its follow-up may have been started and is no longer there (deleted, or older than the retention of the ' +
          'namespace): nobody can tell whether its message was sent. It was not started again.',
      );
    case 'left-running':
      return without('left-running', 'Somebody else started this follow-up; it goes on.');
    case 'conflict':
      return found.compared
        ? {
            ...without(
              'conflict',
              'A follow-up of this name carries another prompt; nothing was sent for this item.',
            ),
            delivery: 'not-sent',
          }
        : without(
            'conflict',
            'A follow-up of this name is there, and its prompt can’t be compared any more.',
          );
  }
}

/** The end of an item that could not even be started. */
export function brokenEnd(message: string): EndOfItem {
  return without('broken', message);
}

function endOfFailure(type: string, message: string, details: unknown): EndOfItem {
  const known = FAILURE_TYPES.find((each) => each === type);
  const { job, followUp } = isRecord(details) ? details : {};
  const { delivery, evidence } = receiptOf(followUp);
  if (known === undefined || delivery === null) return without('broken', message);
  const prLink = isRecord(job) ? linkOf(job.prLink) : null;
  return { ...without(known, message), delivery, evidence, prLink };
}

const VERDICTS: readonly Verdict[] = ['not-sent', 'accepted', 'rejected', 'unknown'];
const EVIDENCE: readonly Evidence[] = ['seen-active', 'status-changed', 'job-changed', 'confirmed'];

/** Delivery and evidence from a receipt; null for anything else. */
function receiptOf(receipt: unknown): Pick<EndOfItem, 'delivery' | 'evidence'> {
  const { delivery, evidence } = isRecord(receipt) ? receipt : {};
  const { verdict } = isRecord(delivery) ? delivery : {};
  return {
    delivery: VERDICTS.find((each) => each === verdict) ?? null,
    evidence: EVIDENCE.find((each) => each === evidence) ?? null,
  };
}

function linkOf(prLink: unknown): string | null {
  const isLink = typeof prLink === 'string' && prLink.length <= MAX_LINK_CHARACTERS && prLink.isWellFormed();
  return isLink ? prLink : null;
}

function without(outcome: ItemOutcome, message: string): EndOfItem {
  return {
    outcome,
    delivery: null,
    evidence: null,
    prLink: null,
    // A foreign program's words may hold half a character, which would end the worker (sdk-core 1.24).
    message: truncate(message, MAX_MESSAGE_CHARACTERS).toWellFormed(),
  };
}
