import { defineUpdate, setHandler } from '@temporalio/workflow';
import { nonRetryableError } from './non-retryable-error';

interface UpdateOptions<Args extends unknown[]> {
  readonly description: string;
  /** Returns why the update is rejected; undefined to accept it. A rejected update adds no event, and a replay skips this check. */
  readonly findProblem?: (...args: Args) => string | undefined;
}

/** Registers the handler of an update, with a validator. */
export function registerUpdate<Result, Args extends unknown[]>(
  name: string,
  handler: (...args: Args) => Result | Promise<Result>,
  { description, findProblem }: UpdateOptions<Args>,
): void {
  const validator = (...args: Args) => {
    rejectUpdateIf(findProblem?.(...args));
  };
  setHandler(defineUpdate<Result, Args>(name), handler, { description, validator });
}

/** @throws ApplicationFailure `InvalidUpdate` if there is a reason to reject the update */
export function rejectUpdateIf(reason: string | undefined): void {
  if (reason !== undefined) throw nonRetryableError('InvalidUpdate', reason);
}
