import { FollowUpError } from '../core/errors';
import type { ItemEnd } from '../core/batch';
import { type Problem, problemText } from '../core/problem';

/** Thrown before anything is started or changed, when an input is invalid: of a request, a batch, a schedule or a limit. */
export class InvalidRequestError extends FollowUpError {
  override readonly name = 'InvalidRequestError';
  override readonly code = 'INVALID_REQUEST';

  /** @param problems all that were found */
  constructor(readonly problems: readonly Problem[]) {
    super(`Invalid request: ${wordsOf(problems)}. Nothing was started or changed.`);
  }
}

/** The first problems: a message is read in one go, and a batch may have 100,000. */
function wordsOf(problems: readonly Problem[]): string {
  const first = problems.slice(0, PROBLEMS_IN_MESSAGE).map((problem) => problemText(problem));
  const more = problems.length - PROBLEMS_IN_MESSAGE;
  return `${first.join('; ')}${more > 0 ? `; … and ${more} more` : ''}`;
}

const PROBLEMS_IN_MESSAGE = 20;

/** Thrown when the server can't tell or take limits, with its reason. */
export class LimitsError extends FollowUpError {
  override readonly name = 'LimitsError';
  override readonly code = 'LIMITS_UNAVAILABLE';
}

/** Thrown when a follow-up of the same `requestId` exists and carries another message. Nothing was started or sent. */
export class RequestConflictError extends FollowUpError {
  override readonly name = 'RequestConflictError';
  override readonly code = 'CONFLICT';

  constructor(
    readonly requestId: string,
    override readonly workflowId: string,
  ) {
    super(
      `The follow-up ${workflowId} exists with another prompt: requestId ${JSON.stringify(requestId)} is taken. ` +
        'Nothing was sent. Give a new message a new requestId; to see the existing one, use its workflow id.',
    );
  }
}

/** Thrown when a batch of the same id exists and has other items, options or another order. Nothing was started. */
export class BatchConflictError extends FollowUpError {
  override readonly name = 'BatchConflictError';
  override readonly code = 'CONFLICT';

  constructor(readonly batchId: string) {
    super(
      `The batch ${JSON.stringify(batchId)} exists, and its items, their options or their order are not these. ` +
        'Nothing was started. Give the very same input to go on with it, or another batch id for another batch.',
    );
  }
}

/** Thrown when a batch id names no batch of the namespace. */
export class BatchNotFoundError extends FollowUpError {
  override readonly name = 'BatchNotFoundError';
  override readonly code = 'NOT_FOUND';

  constructor(
    readonly batchId: string,
    namespace: string,
  ) {
    super(
      `There is no batch ${JSON.stringify(batchId)} in the namespace ${namespace}. It may be misspelt, in another ` +
        'namespace, or older than the retention of the namespace.',
    );
  }
}

/**
 * Thrown when pages of a batch are not there, so that nobody can tell what became of their items. Nothing was started.
 */
export class BatchForgottenError extends FollowUpError {
  override readonly name = 'BatchForgottenError';
  override readonly code = 'BATCH_FORGOTTEN';

  /** @param pages the numbers of those pages */
  constructor(
    readonly batchId: string,
    readonly pages: readonly number[],
  ) {
    super(
      `The server does not have ${pagesInWords(pages)} of the batch ${JSON.stringify(batchId)}: deleted, older than the ` +
        "retention of the namespace, or never handed over. What became of these items can't be told, so nothing was " +
        'started. If the batch was not handed over as a whole, run it again from its file; else send what is left as a ' +
        'batch of its own.',
    );
  }
}

/** Thrown when the ends of some items of a batch can't be read; the others are in `ends`. */
export class EndsUnreadableError extends FollowUpError {
  override readonly name = 'EndsUnreadableError';
  override readonly code = 'RESULTS_UNREADABLE';

  constructor(
    readonly batchId: string,
    readonly pages: readonly number[],
    /** Those that could be read, in the order of settling. */
    readonly ends: readonly ItemEnd[],
  ) {
    super(
      `The ends of the items in ${pagesInWords(pages)} of the batch ${JSON.stringify(batchId)} can't be read: these pages ` +
        'were deleted, reset after they had ended, are older than the retention of the namespace, or were terminated and ' +
        'no worker answers for them.',
    );
  }
}

/** Pages that a message names. */
const PAGES_IN_MESSAGE = 5;

function pagesInWords(pages: readonly number[]): string {
  const named = pages.slice(0, PAGES_IN_MESSAGE).join(', ');
  const more = pages.length - PAGES_IN_MESSAGE;
  return `${pages.length === 1 ? 'page' : 'pages'} ${named}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Thrown when something is asked of a batch that only a running one can do, or only one that has ended. */
export class BatchEndedError extends FollowUpError {
  override readonly name = 'BatchEndedError';
  override readonly code: 'ALREADY_ENDED' | 'STILL_RUNNING';

  constructor(
    readonly batchId: string,
    readonly state: string,
  ) {
    super(
      state === 'running'
        ? `The batch ${JSON.stringify(batchId)} is still running.`
        : `The batch ${JSON.stringify(batchId)} has already ended: ${state}.`,
    );
    this.code = state === 'running' ? 'STILL_RUNNING' : 'ALREADY_ENDED';
  }
}

/** Thrown when a workflow id names no follow-up of the namespace. */
export class FollowUpNotFoundError extends FollowUpError {
  override readonly name = 'FollowUpNotFoundError';
  override readonly code = 'NOT_FOUND';

  /** @param foundType the type of the workflow that has this id, where there is one */
  constructor(
    override readonly workflowId: string,
    namespace: string,
    foundType?: string,
  ) {
    super(
      foundType === undefined
        ? `There is no follow-up with the workflow id ${JSON.stringify(workflowId)} in the namespace ${namespace}. ` +
            'It may be misspelt, in another namespace, or older than the retention of the namespace.'
        : `The workflow ${JSON.stringify(workflowId)} is no follow-up: its type is ${JSON.stringify(foundType)}.`,
    );
  }
}

/** Thrown when something is asked of a follow-up that only a running one can do. */
export class FollowUpEndedError extends FollowUpError {
  override readonly name = 'FollowUpEndedError';
  override readonly code = 'ALREADY_ENDED';

  constructor(
    override readonly workflowId: string,
    readonly state: string,
  ) {
    super(`The follow-up ${workflowId} has already ended: ${state}.`);
  }
}

/** Thrown when a running follow-up refuses an update, with its reason. It leaves no trace in the follow-up. */
export class UpdateRefusedError extends FollowUpError {
  override readonly name = 'UpdateRefusedError';
  override readonly code = 'UPDATE_REFUSED';

  constructor(
    override readonly workflowId: string,
    readonly reason: string,
  ) {
    super(`${named(workflowId)} refuses: ${reason}`);
  }
}

/** Thrown when no worker answered in time. A follow-up waits for its worker and loses nothing by it. */
export class NoAnswerError extends FollowUpError {
  override readonly name = 'NoAnswerError';
  override readonly code = 'NO_ANSWER';

  /** @param workers how many workers poll the task queue */
  constructor(
    override readonly workflowId: string,
    readonly taskQueue: string,
    readonly workers: number,
    waitedMs: number,
  ) {
    const cause =
      workers === 0
        ? `no worker polls the task queue ${JSON.stringify(taskQueue)}; start one and try again`
        : 'it is busy, or waits for the agent service; try again, or look at its status';
    super(`${named(workflowId)} did not answer within ${waitedMs / 1_000} s: ${cause}.`);
  }
}

function named(workflowId: string): string {
  return workflowId.startsWith('follow-up-batch:')
    ? `The batch ${workflowId}`
    : `The follow-up ${workflowId}`;
}

/** Thrown when a schedule of the same id exists. Nothing was changed. */
export class ScheduleExistsError extends FollowUpError {
  override readonly name = 'ScheduleExistsError';
  override readonly code = 'CONFLICT';

  constructor(readonly scheduleId: string) {
    super(
      `The schedule ${JSON.stringify(scheduleId)} exists. Nothing was changed. Use update to change it, or choose another id.`,
    );
  }
}

/** Thrown when an id names no schedule of the namespace, or one that does not start follow-up batches. */
export class ScheduleNotFoundError extends FollowUpError {
  override readonly name = 'ScheduleNotFoundError';
  override readonly code = 'NOT_FOUND';

  /** @param foundType the type of the workflow that it starts, if there is a schedule of this id */
  constructor(
    readonly scheduleId: string,
    namespace: string,
    foundType?: string,
  ) {
    super(
      foundType === undefined
        ? `There is no schedule ${JSON.stringify(scheduleId)} in the namespace ${namespace}. It may be misspelt, ` +
            'deleted, or in another namespace.'
        : `The schedule ${JSON.stringify(scheduleId)} does not start follow-up batches; it starts ${JSON.stringify(foundType)}.`,
    );
  }
}
