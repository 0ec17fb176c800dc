import type { FaultSetting } from '../../../sandbox';

/** The workers' time limit of one exchange: above the longest answer of a slow service. */
export const HTTP_TIMEOUT = '7s';

/** How far behind a read may be, and how much later than accepted a message may be taken up. */
export const LAG_MS = 5_000;
const TAKE_UP_MS = 3_000;

/** What callers set as `confirm`: the two together, as docs/guarantees.md asks for. */
export const CONFIRM_MS = LAG_MS + TAKE_UP_MS;

type Fault = readonly [name: FaultSetting['name'], chance: number, parameters?: FaultSetting['parameters']];

/** About every second message meets something. */
const ON_MESSAGES: readonly Fault[] = [
  ['http-429', 0.06],
  ['slow', 0.06, { delay: '6s', processed: 'before' }],
  ['slow', 0.04, { delay: '5s', processed: 'after' }],
  ['close-before-read', 0.03],
  ['reset', 0.03],
  ['hang', 0.03],
  ['http-503', 0.03],
  ['redirect', 0.02],
  ['processed-then-close', 0.05],
  ['processed-then-reset', 0.04],
  ['processed-then-503', 0.04, { retryAfter: 1 }],
  ['processed-then-timeout', 0.03],
  ['html', 0.02, { processed: 'yes' }],
  ['truncated', 0.02],
  ['stale', 0.2, { for: '3s' }],
  ['late-take-up', 0.6, { upTo: `${TAKE_UP_MS}ms` }],
  ['strange-error', 0.02, { text: 'huge', code: 302, processed: 'yes' }],
];

const ON_READS: readonly Fault[] = [
  ['lag', 0.5, { upTo: `${LAG_MS}ms` }],
  ['http-503', 0.03],
  ['http-429', 0.02],
  ['hang', 0.01],
  ['reset', 0.02],
  ['not-found', 0.01],
  ['html', 0.01],
  ['slow', 0.03, { delay: '500ms' }],
  ['strange-error', 0.01, { text: 'surrogate', code: 301 }],
];

function faultsOf(operation: 'message' | 'get', faults: readonly Fault[]): FaultSetting[] {
  return faults.map(([name, chance, parameters = {}]) => ({ name, operation, chance, parameters }));
}

export const FAULTS = [...faultsOf('message', ON_MESSAGES), ...faultsOf('get', ON_READS)];
