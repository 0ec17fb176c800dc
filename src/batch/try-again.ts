import type { ItemEnd } from '../contract/batch';
import type { TryAgain } from '../contract/batch-workflows';

/**
 * Whether an item is started again that has ended so. Its receipt alone decides: without one nobody can tell whether its
 * message arrived.
 */
export function mayTryAgain(
  { outcome, delivery }: Pick<ItemEnd, 'outcome' | 'delivery'>,
  again: TryAgain,
): boolean {
  // The name belongs to somebody else's message.
  if (outcome === 'conflict') return false;
  if (delivery === 'not-sent' || delivery === 'rejected') return true;
  return again === 'unsent-or-unknown' && (delivery === 'unknown' || delivery === null);
}
