import { describe, expect, it } from '@jest/globals';
import {
  type BatchRequest,
  type BatchStartDecision,
  decideBatchStart,
  type ExistingBatch,
} from '../../../src/client/batch/start';

const START: BatchRequest = { digest: 'd', retryScope: null };
const RETRY: BatchRequest = { digest: 'd', retryScope: 'unsent' };

function existing(state: ExistingBatch['state'], more: Partial<ExistingBatch> = {}): ExistingBatch {
  return { state, digest: 'd', retryScope: null, ...more };
}

describe('decideBatchStart', () => {
  it.each<[string, ExistingBatch | null, BatchRequest, BatchStartDecision]>([
    ['starts a batch that does not exist', null, START, 'start'],
    ['starts a batch that was removed before its retry', null, RETRY, 'start'],
    ['attaches to a running batch', existing('running'), START, 'attach'],
    ['attaches to a running retry', existing('running', { retryScope: 'unsent' }), START, 'attach'],
    ['leaves a batch that is done', existing('completed'), START, 'done'],
    ['continues a batch that has failed', existing('failed'), START, 'resume'],
    ['continues a cancelled batch', existing('cancelled'), START, 'resume'],
    ['continues a terminated batch', existing('terminated'), START, 'resume'],
    ['continues a batch that timed out', existing('timed-out'), START, 'resume'],
    ['rejects other items while the batch runs', existing('running', { digest: 'e' }), START, 'conflict'],
    ['rejects other items after its end', existing('failed', { digest: 'e' }), START, 'conflict'],
    ['rejects items that can’t be compared', existing('completed', { digest: null }), START, 'conflict'],
    ['retries a batch that is done', existing('completed'), RETRY, 'resume'],
    ['retries a batch that has failed', existing('failed'), RETRY, 'resume'],
    ['attaches to the same retry', existing('running', { retryScope: 'unsent' }), RETRY, 'attach'],
    ['waits for a running batch before a retry', existing('running'), RETRY, 'still-running'],
    [
      'waits for another kind of retry',
      existing('running', { retryScope: 'unsent-or-unknown' }),
      RETRY,
      'still-running',
    ],
  ])('%s', (_, batch, request, decision) => {
    expect(decideBatchStart(batch, request)).toBe(decision);
  });
});
