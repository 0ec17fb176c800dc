import { defineUpdate, setHandler } from '@temporalio/workflow';
import { failure } from './failure';

/** The server takes 2,000 in a run (`history.maxTotalUpdates`). */
const MAX_UPDATES = 1_900;
const FULL =
  'this run has taken 1,900 updates; the server takes 2,000, and the rest is kept for what unblocks it';

interface Update<Args extends unknown[]> {
  readonly description: string;
  /** Why it is refused, which leaves no trace in history. A replay does not ask. */
  readonly refusal?: (...args: Args) => string | undefined;
  /** A run that waits for somebody goes on by it, or ends: the last hundred are kept for such. */
  readonly unblocks?: boolean;
}

/** @returns what sets the handler of an update; those of a run are counted together */
export function updatesOfRun<Answer>() {
  let taken = 0;
  return <Args extends unknown[] = []>(
    name: string,
    take: (...args: Args) => Answer | Promise<Answer>,
    { description, refusal, unblocks = false }: Update<Args>,
  ): void => {
    const handler = (...args: Args) => {
      taken += 1;
      return take(...args);
    };
    const validator = (...args: Args) => {
      rejectUpdate(refusal?.(...args) ?? (taken >= MAX_UPDATES && !unblocks ? FULL : undefined));
    };
    setHandler(defineUpdate<Answer, Args>(name), handler, { description, validator });
  };
}

export function rejectUpdate(reason: string | undefined): void {
  if (reason !== undefined) throw failure('InvalidUpdate', reason);
}
