import type { FaultSetting } from '../../../sandbox';

/** The workers' time limit of one exchange: above the longest answer of a slow service. */
export const HTTP_TIMEOUT = '7s';

/** How far behind a read may be, and how much later than accepted a message may be taken up. */
export const LAG_MS = 5_000;
const TAKE_UP_MS = 3_000;

/** What callers set as `confirm`: the two together, as docs/guarantees.md asks for. */
export const CONFIRM_MS = LAG_MS + TAKE_UP_MS;

/** What the service does to messages: about every second one meets something. */
const ON_MESSAGES: readonly FaultSetting[] = [
  { name: 'http-429', chance: 0.06 },
  { name: 'slow', chance: 0.04, parameters: { delay: '700ms' } },
  { name: 'slow', chance: 0.06, parameters: { delay: '6s', processed: 'before' } },
  { name: 'slow', chance: 0.04, parameters: { delay: '5s', processed: 'after' } },
  { name: 'close-before-read', chance: 0.02 },
  { name: 'close-after-read', chance: 0.02 },
  { name: 'reset', chance: 0.02 },
  { name: 'hang', chance: 0.03 },
  { name: 'http-503', chance: 0.03 },
  { name: 'redirect', chance: 0.02 },
  { name: 'processed-then-close', chance: 0.03 },
  { name: 'processed-then-reset', chance: 0.03 },
  { name: 'processed-then-500', chance: 0.03 },
  { name: 'processed-then-503', chance: 0.02, parameters: { retryAfter: 1 } },
  { name: 'processed-then-timeout', chance: 0.03 },
  { name: 'html', chance: 0.02, parameters: { processed: 'yes' } },
  { name: 'truncated', chance: 0.02 },
  { name: 'stale', chance: 0.2, parameters: { for: '3s' } },
  { name: 'late-take-up', chance: 0.6, parameters: { upTo: `${TAKE_UP_MS}ms` } },
  { name: 'strange-error', chance: 0.01 },
  { name: 'strange-error', chance: 0.01, parameters: { text: 'huge', code: 302, processed: 'yes' } },
];

/** What it does to reads. */
const ON_READS: readonly FaultSetting[] = [
  { name: 'lag', chance: 0.5, parameters: { upTo: `${LAG_MS}ms` } },
  { name: 'http-503', chance: 0.03 },
  { name: 'http-429', chance: 0.02 },
  { name: 'hang', chance: 0.01 },
  { name: 'reset', chance: 0.02 },
  { name: 'not-found', chance: 0.01 },
  { name: 'html', chance: 0.01 },
  { name: 'slow', chance: 0.03, parameters: { delay: '500ms' } },
  { name: 'strange-error', chance: 0.005, parameters: { text: 'controls' } },
  { name: 'strange-error', chance: 0.005, parameters: { text: 'surrogate', code: 301 } },
];

export const FAULTS: readonly FaultSetting[] = [
  ...ON_MESSAGES.map((fault) => ({ ...fault, operation: 'message' as const })),
  ...ON_READS.map((fault) => ({ ...fault, operation: 'get' as const })),
];

/** Of a job whose replicas all lag. */
export const LAGGING: FaultSetting = {
  name: 'lag',
  operation: 'get',
  parameters: { upTo: `${LAG_MS}ms` },
};

/** Of a job with strange texts in one field after the other. */
export const STRANGE: FaultSetting = { name: 'strange-job', chance: 0.5 };
