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
 * The send is given up 19 s after its start (2 s for each of its exchanges and 15 s), a workflow task of the lost worker 10 s
 * after its own; two workers start one after the other. It takes 15 to 60 s on two cores.
 */

/** Active in many reads: only an answer that counts proves a delivery. */
const job = { turn: { reads: 12 } } as const;
const COMPLETED = { status: 'completed', evidence: 'seen-active', posts: [true] };

/** Where the first worker is lost, and how the follow-up ends. */
const POINTS: [string, ScenarioOptions, Record<string, unknown>][] = [
  [
    'before it asks whether the send is wanted: another one sends, once',
    { job, hold: ['RecordActivityTaskHeartbeat', 'call'] },
    { ...COMPLETED, delivery: ACCEPTED_BY_RESPONSE },
  ],
  [
    'with the permission to send on its way: nobody can tell, and nothing is sent',
    { job, hold: ['RecordActivityTaskHeartbeat', 'answer'] },
    { type: 'DeliveryUnknown', delivery: UNKNOWN_DELIVERY, evidence: null, posts: [] },
  ],
  [
    'with its POST processed and unanswered: the running turn proves it',
    { job, fault: HOLD_AFTER_PROCESSING },
    { ...COMPLETED, delivery: ACCEPTED_BY_READ },
  ],
];

async function comes({ following, held }: Scenario, { fault }: ScenarioOptions): Promise<void> {
  await (fault === undefined ? held.waitForCall() : following.waitForRequest({ fault: 'hold' }));
}

describe('a worker that is killed', () => {
  // Proves W1, W2.
  it.concurrent.each(POINTS)('%s', (_, options, ending) =>
    withWorker(options, async (scenario) => {
      const { environment, worker, following } = scenario;
      await comes(scenario, options);
      worker.signal('SIGKILL');
      expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
      await environment.startWorker();
      expect(await following.outcomeSummary()).toEqual(ending);
    }),
  );
});

// After the others, so that there are three at a time.
describe('a worker that is frozen until the follow-up has ended', () => {
  // Proves W4, W5.
  it.concurrent.each(POINTS)('%s', (_, options, ending) =>
    withWorker(options, async (scenario) => {
      const { environment, worker, following, gate, held } = scenario;
      await comes(scenario, options);
      worker.signal('SIGSTOP');
      gate.endPolls();
      following.releaseHeldRequests();
      const other = await environment.startWorker();
      expect(await following.outcomeSummary()).toEqual(ending);
      other.signal('SIGKILL');
      await other.exited;
      held.release();
      worker.signal('SIGCONT');
      // It does a whole follow-up, so that what it had begun is done as well.
      const next = await environment.follow({}, WORKER_LOSS_OPTIONS);
      expect((await next.result()).receipt.delivery).toEqual(ACCEPTED_BY_RESPONSE);
      expect(following.processedFlags()).toEqual(ending.posts);
    }),
  );
});
