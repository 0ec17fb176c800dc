import { describe, expect, it } from '@jest/globals';
import { FollowUpClient } from '../../src/client';
import type { Tally } from '../../src/core/activities';
import { eventually } from '../harness/eventually';
import { dueAt, pendingRead } from '../harness/pending-poll';
import { behindGate, onWorker, type Scenario } from './scenario';

/**
 * A poll of a dead worker is given up 30 s after its last heartbeat, a workflow task 10 s after it was offered to the dead
 * worker; a new worker starts in between. It takes 40 to 70 s on two cores.
 */
const LIMIT_MS = 150_000;

/** A turn that ends only when the test says so; it is read once by a timer, and then by one activity. */
const PLOT = {
  job: { turn: { durationMs: null } },
  asked: { polling: { initial: '2s', growth: 0, maximum: '2s', jitter: 0, timerPolls: 1 } },
} as const;

const BY_RETRIES = { ...PLOT, env: { AGENT_API_IN_PROCESS_POLLS: '0' } } as const;

/** What the service has answered since the look before the send, by the journal. */
function answered({ environment, following }: Scenario): number {
  return (
    environment.sandbox.journal.entries({ ...following.key, operation: 'get', ending: 'answered' }).length - 1
  );
}

async function untilAnswered(scenario: Scenario, polls: number): Promise<void> {
  await eventually(`${polls} answers`, () => answered(scenario) >= polls, { timeoutMs: 70_000 });
}

/** The counts that the server has of the pending poll. */
async function recorded({ following }: Scenario): Promise<number> {
  const { heartbeatDetails } = (await pendingRead(following)) ?? {};
  const [payload] = heartbeatDetails?.payloads ?? [];
  return payload ? (JSON.parse(Buffer.from(payload.data ?? []).toString()) as Tally).polls : 0;
}

/** Kills the worker, has another one take its place, and waits until that one has read. */
async function killAndReplace(scenario: Scenario): Promise<void> {
  const { environment, worker } = scenario;
  worker.signal('SIGKILL');
  expect(await worker.exited).toEqual({ code: null, signal: 'SIGKILL' });
  const before = answered(scenario);
  await environment.startWorker();
  await untilAnswered(scenario, before + 2);
}

/** Ends the turn, and expects one message, and a receipt that counts every answer but those that are `lost`. */
async function endsRight(scenario: Scenario, lost = 0): Promise<void> {
  const { environment, following } = scenario;
  environment.sandbox.changeJob(following.key, { status: 'failed' });
  const { status, followUp } = await following.result();
  expect(status).toBe('failed');
  expect(followUp).toMatchObject({ evidence: 'seen-active', delivery: { verdict: 'accepted', sends: 1 } });
  expect(followUp.polls).toBe(answered(scenario) - lost);
  expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
  expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
}

describe('a worker that is killed while one activity polls by its own retries', () => {
  it.concurrent(
    'between two attempts: another one reads on, and every answer is counted',
    () =>
      onWorker(BY_RETRIES, async (scenario) => {
        await eventually('a wait that the server keeps', async () => {
          const pending = await pendingRead(scenario.following);
          return (pending?.attempt ?? 0) > 2 && pending !== undefined && dueAt(pending) > Date.now() + 1_000;
        });
        await killAndReplace(scenario);
        await endsRight(scenario);
        // The look, and one for each poll: the dead worker has left no read unanswered.
        expect(scenario.following.gets()).toBe(answered(scenario) + 1);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'in an attempt: another one reads again, and what was answered before is counted',
    () =>
      onWorker(BY_RETRIES, async (scenario) => {
        const { environment, following } = scenario;
        await untilAnswered(scenario, 3);
        environment.sandbox.setFault({ name: 'hold', ...following.key, operation: 'get', times: 1 });
        await environment.sandbox.journal.waitFor({ ...following.key, fault: 'hold' });
        await killAndReplace(scenario);
        await endsRight(scenario);
        // The read in which the worker died was never answered: it tells nothing, and is no poll.
        expect(following.gets()).toBe(answered(scenario) + 2);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'while it hands a wait over to the server: that one answer is lost, and every other is counted',
    () =>
      behindGate(['RespondActivityTaskFailed', 'call'], BY_RETRIES, async (scenario) => {
        // The first wait is handed over without a read; the next report has one.
        await scenario.held.arrived();
        scenario.held.release();
        const report = scenario.gate.hold('RespondActivityTaskFailed', 'call');
        await report.arrived();
        expect(answered(scenario)).toBeGreaterThan(0);
        await killAndReplace(scenario);
        await endsRight(scenario, 1);
      }),
    LIMIT_MS,
  );
});

describe('a worker in whose process a follow-up is polled', () => {
  it.concurrent(
    'that is killed between two reads: another one goes on from the counts of the last heartbeat',
    () =>
      onWorker(PLOT, async (scenario) => {
        await untilAnswered(scenario, 4);
        const lost = answered(scenario) - 1 - (await recorded(scenario));
        expect(lost).toBeGreaterThan(0);
        await killAndReplace(scenario);
        await endsRight(scenario, lost);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'that is killed in a read: another one reads again, from the counts of the last heartbeat',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { environment, following } = scenario;
        await untilAnswered(scenario, 3);
        environment.sandbox.setFault({ name: 'hold', ...following.key, operation: 'get', times: 1 });
        await environment.sandbox.journal.waitFor({ ...following.key, fault: 'hold' });
        const lost = answered(scenario) - 1 - (await recorded(scenario));
        await killAndReplace(scenario);
        await endsRight(scenario, lost);
        expect(following.gets()).toBe(answered(scenario) + 2);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'that is told to end: it hands the wait over at once, with every answer counted',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { environment, worker } = scenario;
        await untilAnswered(scenario, 4);
        worker.signal('SIGTERM');
        expect(await worker.exited).toEqual({ code: 0, signal: null });
        expect((await pendingRead(scenario.following))?.attempt).toBe(2);
        expect(await recorded(scenario)).toBe(answered(scenario) - 1);
        const before = answered(scenario);
        await environment.startWorker();
        await untilAnswered(scenario, before + 2);
        await endsRight(scenario);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'that stands still for too long: another one reads on, and nothing is counted twice',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { environment, worker, following } = scenario;
        await untilAnswered(scenario, 3);
        worker.signal('SIGSTOP');
        const lost = answered(scenario) - 1 - (await recorded(scenario));
        const before = answered(scenario);
        await environment.startWorker();
        await untilAnswered(scenario, before + 2);
        worker.signal('SIGCONT');
        // It is told with its next heartbeat that it is no longer wanted; what it reads until then is nobody's poll.
        environment.sandbox.changeJob(following.key, { status: 'failed' });
        const { followUp } = await following.result();
        expect(followUp.polls).toBeLessThanOrEqual(answered(scenario) - lost);
        expect(followUp.observed).toEqual({ active: followUp.polls - 1, failed: 1 });
        expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'hands each read to the queue within a minute of a limit, and takes it back without one; every answer is counted',
    () =>
      onWorker(PLOT, async (scenario) => {
        const { environment, following } = scenario;
        const { sendTaskQueue, readTaskQueue } = environment.taskQueues;
        const limits = new FollowUpClient(environment.client, { readTaskQueue, sendTaskQueue });
        await untilAnswered(scenario, 2);
        expect((await pendingRead(following))?.attempt).toBe(1);
        await limits.limits.set({ readsTotal: '100/s' });
        const attempt = async () => (await pendingRead(following))?.attempt ?? 0;
        await eventually('reads by attempts of their own', async () => (await attempt()) >= 4, {
          timeoutMs: 60_000,
        });
        await limits.limits.clear();
        await eventually(
          'reads in the process',
          async () => {
            const [before, reads] = [await attempt(), answered(scenario)];
            await untilAnswered(scenario, reads + 3);
            return (await attempt()) === before;
          },
          { timeoutMs: 60_000 },
        );
        await endsRight(scenario);
      }),
    LIMIT_MS + 60_000,
  );
});
