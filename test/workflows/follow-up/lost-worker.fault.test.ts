import { describe, expect, it } from '@jest/globals';
import { ACCEPTED_BY_READ, ACCEPTED_BY_RESPONSE, UNKNOWN_DELIVERY } from '../../harness/follow-up-under-test';
import { WORKER_LOSS_OPTIONS } from '../../harness/process-environment';
import {
  withWorker,
  HOLD_AFTER_PROCESSING,
  type Scenario,
  type ScenarioOptions,
} from '../../harness/scenario';

/*
 * The send of a lost worker times out 35 s after its start: 10 s for each of the two HTTP requests, and 15 s.
 * A workflow task of the worker times out after 10 s. In each test, two workers start one after the other.
 */

/** The job is active in many reads, because only a fresh read can show the delivery. */
const job = { turn: { reads: 12 } } as const;
const COMPLETED = { status: 'completed', evidence: 'seen-active', posts: [true] };

/** The moments at which the first worker is lost, with the expected outcome of the follow-up. */
const POINTS: [string, ScenarioOptions, Record<string, unknown>][] = [
  [
    'before its request for the send permission reaches the Temporal server: another worker sends the message once',
    { job, hold: ['RecordActivityTaskHeartbeat', 'call'] },
    { ...COMPLETED, delivery: ACCEPTED_BY_RESPONSE },
  ],
  [
    'after the send permission was recorded and before it receives the permission: the delivery is unknown, and no POST is made',
    { job, hold: ['RecordActivityTaskHeartbeat', 'response'] },
    { type: 'DeliveryUnknown', delivery: UNKNOWN_DELIVERY, evidence: null, posts: [] },
  ],
  [
    'after its POST was processed and before the response: a read of the turn shows the delivery',
    { job, fault: HOLD_AFTER_PROCESSING },
    { ...COMPLETED, delivery: ACCEPTED_BY_READ },
  ],
];

async function waitForMoment({ following, held }: Scenario, { fault }: ScenarioOptions): Promise<void> {
  await (fault === undefined ? held.waitForCall() : following.waitForRequest({ fault: 'hold' }));
}

describe('a worker', () => {
  // Proves W1, W2.
  it.concurrent.each(POINTS)('killed %s', (_, options, expected) =>
    withWorker(options, async (scenario) => {
      const { environment, worker, following } = scenario;
      await waitForMoment(scenario, options);
      worker.signal('SIGKILL');
      expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
      await environment.startWorker();
      expect(await following.outcomeSummary()).toEqual(expected);
    }),
  );
});

// A separate group runs after the tests above, so that only three tests run at the same time.
describe('a worker that resumes after the follow-up has ended', () => {
  // Proves W4, W5.
  it.concurrent.each(POINTS)('frozen %s', (_, options, expected) =>
    withWorker(options, async (scenario) => {
      const { environment, worker, following, gate, held } = scenario;
      await waitForMoment(scenario, options);
      worker.signal('SIGSTOP');
      gate.endPolls();
      following.releaseHeldRequests();
      const other = await environment.startWorker();
      expect(await following.outcomeSummary()).toEqual(expected);
      other.signal('SIGKILL');
      await other.exited;
      held.release();
      worker.signal('SIGCONT');
      // The resumed worker completes another follow-up, so that it has also finished all work that it had started before.
      const next = await environment.follow({}, WORKER_LOSS_OPTIONS);
      expect((await next.result()).receipt.delivery).toEqual(ACCEPTED_BY_RESPONSE);
      expect(following.processedFlags()).toEqual(expected.posts);
    }),
  );
});
