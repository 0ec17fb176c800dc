import Sequencer from '@jest/test-sequencer';

/** The files of the long tests that take a minute or more. If one of these files came last, it would run alone for minutes. */
const SLOWEST = [
  ...[
    'deployments.e2e',
    'kubernetes.e2e',
    'gateway.long',
    'alerts.long',
    'archives.e2e',
    'examples.e2e',
    'soak.fault',
  ],
  ...['lost-poll.fault', 'versions.long', 'lost-worker.fault', 'demo.long'],
];

/** The files of `npm test` that would run alone if they came last. */
const LONG_ALONE = ['simulation.test', 'batch.server'];

/**
 * The files whose setup compiles the programs. Setups run in the order of the tests. If this setup runs first, it compiles the
 * programs while the shared server starts.
 */
const COMPILED = '.process.test.ts';

/**
 * Runs the slowest files first. Without this order, Jest starts with the largest files if it has no earlier times, as in a new
 * clone.
 */
export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const isSlow = ({ path }) => [...SLOWEST, ...LONG_ALONE, COMPILED].some((name) => path.includes(name));
    return super.sort(tests).sort((one, other) => isSlow(other) - isSlow(one));
  }
}
