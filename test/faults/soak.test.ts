import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { UPDATE_RESOLVE_DELIVERY } from '../../src/contract/names';
import { seededRandom } from '../../src/sandbox/random';
import { ProcessHouse } from '../harness/process-house';
import { cast } from './soak/cast';
import { FAULTS, killWorkers } from './soak/chaos';
import { endOf, lies, receiptOf } from './soak/oracle';

const FOLLOW_UPS = 300;

/** The killing ends here, whatever still runs; then the deadline of 150 s ends every follow-up. */
const CHAOS_MS = 90_000;

/** Three minutes at most, and the start of the first workers. */
const LIMIT_MS = 200_000;

/**
 * Turns of up to 6 s are seen several times; `reconcile` outlasts one and a worker's death in it; `confirm` is longer than
 * the service's replicas lag.
 */
const TIMES = {
  deadline: '150s',
  polling: { initial: '2s', growth: 0.2, maximum: '5s', jitter: 0.2 },
  reconcile: '6s',
  settle: '3s',
  confirm: '4s',
} as const;

/** `FOLLOW_UP_SOAK_SEED` repeats the jobs, faults and kills of a run; their order in time is the machine's. */
const seed = Number(process.env.FOLLOW_UP_SOAK_SEED ?? Math.floor(Math.random() * 2 ** 31));

it(
  'three hundred follow-ups at once, through kills and faults: each ends, none is processed twice, and no receipt lies',
  async () => {
    process.stderr.write(`[soak] FOLLOW_UP_SOAK_SEED=${seed}\n`);
    const random = seededRandom(seed);
    const sandbox = { seed, messagesPerHour: null };
    await ProcessHouse.with({ sandbox, env: { AGENT_API_TIMEOUT: '1s' } }, async (house) => {
      for (const fault of FAULTS) house.sandbox.setFault(fault);
      const parts = cast(FOLLOW_UPS, random);
      for (const { job } of parts) house.sandbox.addJob(job);

      const over = new AbortController();
      const killing = killWorkers(
        house,
        random,
        AbortSignal.any([over.signal, AbortSignal.timeout(CHAOS_MS)]),
      );
      const deciding = decide(house, over.signal);
      const ends = await Promise.all(
        parts.map(async (part) => {
          const { projectId, id: jobId } = part.job;
          const following = await house.send({
            projectId,
            jobId,
            requestId: 'soak',
            ...TIMES,
            ...part.asked,
          });
          return { part, following, end: await endOf(following) };
        }),
      );
      over.abort();
      const [kills] = await Promise.all([killing, deciding]);

      const found = ends.flatMap(({ part, following, end }) => {
        const report = house.sandbox.job(following.key);
        return lies(part, end, following.posts(), report).map((lie) => ({ lie, part, end }));
      });
      const posts = house.sandbox.journal.entries({ operation: 'message' });
      const told = ends.map(({ end }) => {
        const { verdict, confirmedBy } = receiptOf(end).delivery;
        return `${end.kind === 'result' ? end.result.status : end.type} (${confirmedBy ?? verdict})`;
      });
      const counts = new Map<string, number>();
      for (const each of told) counts.set(each, (counts.get(each) ?? 0) + 1);
      const summary = [...counts].map(([each, count]) => `${count} ${each}`).sort();
      process.stderr.write(`[soak] ${kills} kills, ${posts.length} POSTs; ${summary.join(', ')}\n`);
      expect(found).toEqual([]);
      expect(kills).toBeGreaterThan(3);
      expect(posts.filter(({ processed }) => processed).length).toBeGreaterThan(FOLLOW_UPS / 2);
    });
  },
  LIMIT_MS,
);

/** An operator who says of every follow-up that asks: delivered. */
async function decide({ client, taskQueue }: ProcessHouse, over: AbortSignal): Promise<void> {
  const query = `TaskQueue = '${taskQueue}' AND FollowUpPhase = 'needs-decision' AND ExecutionStatus = 'Running'`;
  while (!over.aborted) {
    for await (const { workflowId } of client.workflow.list({ query })) {
      const handle = client.workflow.getHandle(workflowId);
      // Refused where it has decided meanwhile; lost where its worker is killed: then it is asked again.
      await client
        .withDeadline(Date.now() + 5_000, () =>
          handle.executeUpdate(UPDATE_RESOLVE_DELIVERY, { args: ['delivered'] }),
        )
        .catch(() => undefined);
    }
    await sleep(1_000, undefined, { signal: over }).catch(() => undefined);
  }
}
