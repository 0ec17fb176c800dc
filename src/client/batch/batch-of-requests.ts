import type { FollowUpRequest } from '../../contract/request';
import { type CheckedBatch, ItemCollector } from './item-collector';

/**
 * Checks requests that a program made, before anything is started. Their numbers in problems count from 1.
 *
 * @param batchId 1 to 100 characters; a hash of the items where it is left out
 * @throws InvalidBatchError with every problem, each of which names its item
 */
export async function batchOfRequests(
  requests: Iterable<FollowUpRequest> | AsyncIterable<FollowUpRequest>,
  batchId?: string,
): Promise<CheckedBatch> {
  const collector = new ItemCollector({ unit: 'item', batchId });
  let number = 0;
  for await (const request of requests) {
    number += 1;
    collector.add(number, request);
  }
  return collector.finish();
}
