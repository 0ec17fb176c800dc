import { type ErrorFacts, FollowUpError } from '../core/errors';
import type { ItemEnd } from '../core/batch';
import { type Problem, problemText } from '../core/problem';

/** Thrown before anything is started or changed, when an input is invalid: of a request, a batch, a schedule or a limit. */
export class InvalidRequestError extends FollowUpError {
  override readonly name = 'InvalidRequestError';

  /** @param problems all that were found */
  constructor(readonly problems: readonly Problem[]) {
    super('INVALID_REQUEST', `Invalid request: ${wordsOf(problems)}. Nothing was started or changed.`);
  }
}

/** The first problems: a message is read in one go, and a batch may have 100,000. */
function wordsOf(problems: readonly Problem[]): string {
  const first = problems.slice(0, PROBLEMS_IN_MESSAGE).map((problem) => problemText(problem));
  const more = problems.length - PROBLEMS_IN_MESSAGE;
  return `${first.join('; ')}${more > 0 ? `; … and ${more} more` : ''}`;
}

const PROBLEMS_IN_MESSAGE = 20;

/** Thrown when a name is taken: by another message, another batch, or a schedule. Nothing was started or changed. */
export class ConflictError extends FollowUpError {
  override readonly name = 'ConflictError';

  constructor(message: string, facts: ErrorFacts = {}) {
    super('CONFLICT', message, facts);
  }
}

/** A follow-up of the same `requestId` exists and carries another message. */
export function requestConflict(requestId: string, workflowId: string): ConflictError {
  return new ConflictError(
    `The follow-up ${workflowId} exists with another prompt: requestId ${quoted(requestId)} is taken. ` +
      'Nothing was sent. Give a new message a new requestId; to see the existing one, use its workflow id.',
    { workflowId },
  );
}

export function batchConflict(batchId: string): ConflictError {
  return new ConflictError(
    `The batch ${quoted(batchId)} exists with different items, options or order. Nothing was started. ` +
      'Give the same input to continue it, or another batch id for another batch.',
  );
}

export function scheduleConflict(scheduleId: string): ConflictError {
  return new ConflictError(
    `The schedule ${quoted(scheduleId)} exists. Nothing was changed. Use update to change it, or choose another id.`,
  );
}

/** Thrown when an id names no follow-up, batch or schedule of the namespace. */
export class NotFoundError extends FollowUpError {
  override readonly name = 'NotFoundError';

  constructor(message: string, facts: ErrorFacts = {}) {
    super('NOT_FOUND', message, facts);
  }
}

const PERHAPS = 'It may be misspelt, in another namespace, or older than the retention of the namespace.';

/** @param foundType the type of the workflow that has this id, if there is one */
export function followUpNotFound(workflowId: string, namespace: string, foundType?: string): NotFoundError {
  return new NotFoundError(
    foundType === undefined
      ? `There is no follow-up with the workflow id ${quoted(workflowId)} in the namespace ${namespace}. ${PERHAPS}`
      : `The workflow ${quoted(workflowId)} is not a follow-up; its type is ${quoted(foundType)}.`,
    { workflowId },
  );
}

export function batchNotFound(batchId: string, namespace: string): NotFoundError {
  return new NotFoundError(`There is no batch ${quoted(batchId)} in the namespace ${namespace}. ${PERHAPS}`);
}

/** @param foundType the type of the workflow that it starts, if there is a schedule of this id */
export function scheduleNotFound(scheduleId: string, namespace: string, foundType?: string): NotFoundError {
  return new NotFoundError(
    foundType === undefined
      ? `There is no schedule ${quoted(scheduleId)} in the namespace ${namespace}. It may be misspelt, deleted, or in another namespace.`
      : `The schedule ${quoted(scheduleId)} does not start follow-up batches; it starts ${quoted(foundType)}.`,
  );
}

/** Thrown when no worker answered in time. A follow-up waits for its worker and loses nothing by it. */
export class NoAnswerError extends FollowUpError {
  override readonly name = 'NoAnswerError';

  /** @param workers how many workers poll the task queue */
  constructor(
    workflowId: string,
    readonly taskQueue: string,
    readonly workers: number,
    waitedMs: number,
  ) {
    const cause =
      workers === 0
        ? `no worker polls the task queue ${quoted(taskQueue)}; start one and try again`
        : 'it is busy, or waits for the agent service; try again, or look at its status';
    super('NO_ANSWER', `${named(workflowId)} did not answer within ${waitedMs / 1_000} s: ${cause}.`, {
      workflowId,
    });
  }
}

/**
 * Pages of a batch are missing, so nobody can tell what became of their items. Nothing was started.
 *
 * @param pages the numbers of those pages
 */
export function batchForgotten(batchId: string, pages: readonly number[]): FollowUpError {
  return new FollowUpError(
    'BATCH_FORGOTTEN',
    `The server does not have ${pagesInWords(pages)} of the batch ${quoted(batchId)}: deleted, older than the ` +
      'retention of the namespace, or never handed over. Nobody can tell what became of these items, so nothing was ' +
      'started. If the batch was not handed over as a whole, run it again from its file; else send what is left as a ' +
      'batch of its own.',
  );
}

/** @param ends those that could be read, in the order of settling */
export function endsUnreadable(
  batchId: string,
  pages: readonly number[],
  ends: readonly ItemEnd[],
): FollowUpError {
  return new FollowUpError(
    'RESULTS_UNREADABLE',
    `The ends of the items in ${pagesInWords(pages)} of the batch ${quoted(batchId)} can't be read: these pages ` +
      'were deleted, were reset after they had ended, are older than the retention of the namespace, or were terminated ' +
      'and no worker answers for them.',
    { ends },
  );
}

/** Pages that a message names. */
const PAGES_IN_MESSAGE = 5;

function pagesInWords(pages: readonly number[]): string {
  const first = pages.slice(0, PAGES_IN_MESSAGE).join(', ');
  const more = pages.length - PAGES_IN_MESSAGE;
  return `${pages.length === 1 ? 'page' : 'pages'} ${first}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Something was asked of a batch that only a running one can do, or only one that has ended. */
export function batchEnded(batchId: string, state: string): FollowUpError {
  return state === 'running'
    ? new FollowUpError('STILL_RUNNING', `The batch ${quoted(batchId)} is still running.`, { state })
    : new FollowUpError('ALREADY_ENDED', `The batch ${quoted(batchId)} has already ended: ${state}.`, {
        state,
      });
}

/** Something was asked of a follow-up that only a running one can do. */
export function followUpEnded(workflowId: string, state: string): FollowUpError {
  const message = `The follow-up ${workflowId} has already ended: ${state}.`;
  return new FollowUpError('ALREADY_ENDED', message, { workflowId, state });
}

/** A running follow-up or batch refused an update. It leaves no trace in its history. */
export function updateRefused(workflowId: string, reason: string): FollowUpError {
  return new FollowUpError('UPDATE_REFUSED', `${named(workflowId)} refuses: ${reason}`, { workflowId });
}

function named(workflowId: string): string {
  return workflowId.startsWith('follow-up-batch:')
    ? `The batch ${workflowId}`
    : `The follow-up ${workflowId}`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
