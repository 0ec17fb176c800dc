import type { TurnHolder } from '../core/wire';
import { questionProxy } from './activity-proxies';

/**
 * The turn at a job, as a lock: one is open at a time, by its workflow id. It asks whether the follow-up that has taken it has
 * ended: nobody can be relied on to tell.
 */
export async function followUpTurn(holder: TurnHolder): Promise<void> {
  await questionProxy('has the follow-up ended?').awaitEnd(holder);
}
