import { isTerminal } from '../contract/job';
import type { WhenActive } from '../contract/request';

export type Gate = 'send' | 'wait' | 'reject';

/** Whether a message may be sent to a job of this status. A status nobody knows counts as active. */
export function gate(status: string, whenActive: WhenActive): Gate {
  return isTerminal(status) ? 'send' : whenActive;
}
