import { defineUpdate, setHandler } from '@temporalio/workflow';
import { nonRetryableError } from './non-retryable-error';

interface UpdateOptions<Args extends unknown[]> {
  readonly description: string;
  /** Returns why the update is rejected. A rejected update leaves no event in the history, and a replay skips this check. */
  readonly findProblem?: (...args: Args) => string | undefined;
}

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

export function rejectUpdateIf(reason: string | undefined): void {
  if (reason !== undefined) throw nonRetryableError('InvalidUpdate', reason);
}
