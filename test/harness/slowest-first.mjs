import Sequencer from '@jest/test-sequencer';

/** Of the long suites, those that take a minute or more: if one of them came last, it would run alone for minutes. */
const SLOWEST = [
  ...['alerts.long', 'archives.e2e', 'examples.e2e', 'soak.fault'],
  ...['lost-poll.fault', 'versions.long', 'lost-worker.fault', 'demo.long'],
];

/** Of `npm test`, those that would run alone if they came last. */
const LONG_ALONE = ['simulation.test', 'batch.server'];

/** Set-ups run in the order of the tests, and theirs compiles while the shared server starts. */
const COMPILED = '.process.test.ts';

/** Jest begins with the largest files where it has not run them before, as on a clean clone. */
export default class SlowestFirst extends Sequencer {
  sort(tests) {
    const isSlow = ({ path }) => [...SLOWEST, ...LONG_ALONE, COMPILED].some((name) => path.includes(name));
    return super.sort(tests).sort((one, other) => isSlow(other) - isSlow(one));
  }
}
