import type { TurnHolder } from '../core/activities';
import { questionProxy } from './activity-proxies';

/**
 * The turn at a job, as a lock: one is open at a time, by its workflow id. It asks whether the follow-up that has taken it has
 * ended, since nobody can be relied on to tell: that one may be terminated, time out, continue as new or be reset. Whoever ends
 * the lock lets the next one go on.
 */
export async function followUpTurn(holder: TurnHolder): Promise<void> {
  await questionProxy('has the follow-up ended?').awaitEnd(holder);
}
