import { ApplicationFailure } from '@temporalio/workflow';
import type { BatchSummary } from '../../contract/batch';
import type { Allotment, BatchFailureType } from '../../contract/batch-workflows';
import { type BatchState, type Ending, failuresSoFar } from './state';

/** Whether the pages of a batch go on. */
export function modeOf(ending: Ending | null): Allotment['mode'] {
  switch (ending) {
    case null:
      return 'run';
    case 'cancel':
      return 'leave';
    case 'cancel-running':
      return 'cancel';
    case 'tolerance':
    case 'lost-page':
    case 'not-handed-over':
      return 'drain';
  }
}

/** The failure by which a batch ends, with its summary; null where it is done. */
export function failureOf(state: BatchState, summary: BatchSummary): ApplicationFailure | null {
  const [type, message] = wordsOf(state, summary);
  if (type === null) return null;
  return ApplicationFailure.create({ type, message, nonRetryable: true, details: [summary] });
}

function wordsOf(state: BatchState, { settled, items }: BatchSummary): [BatchFailureType | null, string] {
  const again = `${settled} of ${items} items have ended. The same batch started again goes on: what has ended is not sent again.`;
  if (state.ending === 'tolerance') {
    return [
      'ToleranceExceeded',
      `More items failed than the tolerance allows: ${failuresSoFar(state)}. ${again}`,
    ];
  }
  if (state.ending === 'not-handed-over') {
    return ['BatchIncomplete', `Not all pages were handed over: the starter has ended before. ${again}`];
  }
  if (settled < items) return ['BatchIncomplete', `A page was ended before its items. ${again}`];
  return [null, ''];
}
