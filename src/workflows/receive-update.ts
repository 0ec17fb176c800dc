import { defineUpdate, setHandler } from '@temporalio/workflow';
import { failure } from './failure';

interface UpdateOptions<Args extends unknown[]> {
  readonly description: string;
  /** Returns why the update is rejected. A rejected update leaves no event in the history, and a replay skips this check. */
  readonly refusal?: (...args: Args) => string | undefined;
}

export function receiveUpdate<Result, Args extends unknown[]>(
  name: string,
  handler: (...args: Args) => Result | Promise<Result>,
  { description, refusal }: UpdateOptions<Args>,
): void {
  const validator = (...args: Args) => {
    rejectUpdate(refusal?.(...args));
  };
  setHandler(defineUpdate<Result, Args>(name), handler, { description, validator });
}

export function rejectUpdate(reason: string | undefined): void {
  if (reason !== undefined) throw failure('InvalidUpdate', reason);
}
