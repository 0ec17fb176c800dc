import { describe, expect, it } from '@jest/globals';
import { BY_READ, BY_RESPONSE, UNKNOWN } from '../../harness/following';
import { PATIENT } from '../../harness/process-environment';
import { onWorker, PROCESSED, type Scenario, type ScenarioOptions } from '../../harness/scenario';

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
    { ...COMPLETED, delivery: BY_RESPONSE },
  ],
  [
    'with the permission to send on its way: nobody can tell, and nothing is sent',
    { job, hold: ['RecordActivityTaskHeartbeat', 'answer'] },
    { type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: [] },
  ],
  [
    'with its POST processed and unanswered: the running turn proves it',
    { job, fault: PROCESSED },
    { ...COMPLETED, delivery: BY_READ },
  ],
];

async function comes({ following, held }: Scenario, { fault }: ScenarioOptions): Promise<void> {
  await (fault === undefined ? held.arrived() : following.reached({ fault: 'hold' }));
}

describe('a worker that is killed', () => {
  // Proves W1, W2.
  it.concurrent.each(POINTS)('%s', (_, options, ending) =>
    onWorker(options, async (scenario) => {
      const { environment, worker, following } = scenario;
      await comes(scenario, options);
      worker.signal('SIGKILL');
      expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
      await environment.startWorker();
      expect(await following.ending()).toEqual(ending);
    }),
  );
});

// After the others, so that there are three at a time.
describe('a worker that is frozen until the follow-up has ended', () => {
  // Proves W4, W5.
  it.concurrent.each(POINTS)('%s', (_, options, ending) =>
    onWorker(options, async (scenario) => {
      const { environment, worker, following, gate, held } = scenario;
      await comes(scenario, options);
      worker.signal('SIGSTOP');
      gate.endPolls();
      following.release();
      const other = await environment.startWorker();
      expect(await following.ending()).toEqual(ending);
      other.signal('SIGKILL');
      await other.exited;
      held.release();
      worker.signal('SIGCONT');
      // It does a whole follow-up, so that what it had begun is done as well.
      const next = await environment.follow({}, PATIENT);
      expect((await next.result()).receipt.delivery).toEqual(BY_RESPONSE);
      expect(following.processed()).toEqual(ending.posts);
    }),
  );
});
