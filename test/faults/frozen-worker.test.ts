import { describe, expect, it } from '@jest/globals';
import type { Following } from '../harness/following';
import { PATIENT, ProcessEnvironment } from '../harness/process-environment';
import { TemporalGate } from '../harness/temporal-gate';
import { temporal } from '../harness/temporal';
import type { WorkerProcess } from '../harness/worker-process';
import { Front } from './front';
import { showsPhase } from './scenario';

/**
 * The server gives the send up 19 to 27 s after its start, while the worker stands still; a second worker starts, decides
 * and ends; the first one wakes and works. It takes 40 to 60 s on two cores, beside four other tests.
 */
const LIMIT_MS = 150_000;

const BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
const UNKNOWN = { verdict: 'unknown', confirmedBy: null, sends: 1 };

interface Scenario {
  readonly environment: ProcessEnvironment;
  readonly gate: TemporalGate;
  /** The worker that is going to stand still. */
  readonly worker: WorkerProcess;
  readonly following: Following;
}

/** A follow-up whose worker has a gate between itself and the server; `prepare` comes before its start. */
async function behindGate<T>(
  prepare: (gate: TemporalGate, environment: ProcessEnvironment) => T,
  test: (scenario: Scenario, prepared: T) => Promise<void>,
): Promise<void> {
  const gate = await TemporalGate.open(temporal().address);
  try {
    await ProcessEnvironment.with({}, async (environment) => {
      const worker = await environment.startWorker({ TEMPORAL_ADDRESS: gate.address });
      const prepared = prepare(gate, environment);
      const following = await environment.follow({ turn: { durationMs: null } }, PATIENT);
      await test({ environment, gate, worker, following }, prepared);
    });
  } finally {
    await gate.close();
  }
}

function freeze({ worker, gate }: Scenario): void {
  worker.signal('SIGSTOP');
  gate.endPolls();
}

/** Another worker takes the place of the frozen one, until the follow-up has its end. */
async function endsElsewhere({ environment, following }: Scenario) {
  const other = await environment.startWorker();
  const { type, details } = await following.failure();
  other.signal('SIGKILL');
  await other.exited;
  return { type, delivery: details.followUp.delivery };
}

/** Another worker sends the message in place of the frozen one, and watches the follow-up to its end. */
async function sentElsewhere({ environment, following }: Scenario) {
  const other = await environment.startWorker();
  const sent = { ...following.key, operation: 'message', ending: 'answered' } as const;
  await environment.sandbox.journal.waitFor(sent, { timeoutMs: 60_000 });
  environment.sandbox.changeJob(following.key, { status: 'completed', prLink: 'https://code.test/pull/5' });
  const { followUp } = await following.result();
  other.signal('SIGKILL');
  await other.exited;
  return followUp.delivery;
}

/** Wakes the worker, and has it do a whole follow-up, so that what it had begun before is done as well. */
async function wakes({ environment, worker }: Scenario): Promise<void> {
  worker.signal('SIGCONT');
  const next = await environment.follow({}, PATIENT);
  expect((await next.result()).followUp.delivery).toEqual(BY_RESPONSE);
}

describe('a worker that is frozen, and wakes after the follow-up has ended', () => {
  it.concurrent(
    'with the task of the send unread in its socket: another one sends, and it sends nothing more',
    () => {
      const prepare = (gate: TemporalGate) => gate.hold('PollActivityTaskQueue', 'answer', 'sendMessage');
      return behindGate(prepare, async (scenario, held) => {
        await held.arrived();
        freeze(scenario);
        held.release();
        expect(await sentElsewhere(scenario)).toEqual(BY_RESPONSE);
        await wakes(scenario);
        expect(scenario.following.posts().map(({ processed }) => processed)).toEqual([true]);
      });
    },
    LIMIT_MS,
  );

  it.concurrent(
    'before it has asked whether the send is still wanted: it is told that it is not, and another one sends',
    () => {
      const prepare = (gate: TemporalGate) => gate.hold('RecordActivityTaskHeartbeat', 'call');
      return behindGate(prepare, async (scenario, held) => {
        await held.arrived();
        freeze(scenario);
        expect(await sentElsewhere(scenario)).toEqual(BY_RESPONSE);
        held.release();
        await wakes(scenario);
        expect(scenario.following.posts().map(({ processed }) => processed)).toEqual([true]);
      });
    },
    LIMIT_MS,
  );

  it.concurrent(
    'with the answer that the send is wanted unread in its socket: the answer is too old, and it sends nothing',
    () => {
      const prepare = (gate: TemporalGate) => gate.hold('RecordActivityTaskHeartbeat', 'answer');
      return behindGate(prepare, async (scenario, held) => {
        await held.arrived();
        freeze(scenario);
        held.release();
        expect(await endsElsewhere(scenario)).toEqual({ type: 'DeliveryUnknown', delivery: UNKNOWN });
        await wakes(scenario);
        expect(scenario.following.posts()).toEqual([]);
      });
    },
    LIMIT_MS,
  );

  it.concurrent(
    'while it connects for its POST, with the connection made meanwhile: it sends nothing',
    () =>
      ProcessEnvironment.with({}, async (environment) => {
        const gate = await TemporalGate.open(temporal().address);
        const front = await Front.open(Number(new URL(environment.sandbox.baseUrl).port));
        try {
          const worker = await environment.startWorker({
            TEMPORAL_ADDRESS: gate.address,
            AGENT_API_BASE_URL: `http://127.0.0.1:${front.port}`,
            // Connecting gets a third of it: the moment in which the worker must be frozen.
            AGENT_API_TIMEOUT: '6s',
          });
          const held = gate.hold('RecordActivityTaskHeartbeat', 'call');
          const following = await environment.follow({ turn: { durationMs: null } }, PATIENT);
          const scenario = { environment, gate, worker, following };
          await held.arrived();
          await front.deafen();
          held.release();
          const localPort = await front.meets('connecting');
          freeze(scenario);
          front.hear();
          await front.meets('connected', localPort);
          expect(await endsElsewhere(scenario)).toEqual({ type: 'DeliveryUnknown', delivery: UNKNOWN });
          await wakes(scenario);
          expect(following.posts()).toEqual([]);
        } finally {
          await gate.close();
          await front.close();
        }
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'after its POST, which was found by reading: its late report changes nothing, and nothing is sent',
    () => {
      const prepare = (_gate: TemporalGate, { sandbox }: ProcessEnvironment) => {
        sandbox.setFault({ name: 'hold', operation: 'message', times: 1 });
      };
      return behindGate(prepare, async (scenario) => {
        const { environment, following } = scenario;
        const { journal } = environment.sandbox;
        await journal.waitFor({ fault: 'hold' }, { timeoutMs: 30_000 });
        freeze(scenario);
        environment.sandbox.release();
        const other = await environment.startWorker();
        // No query: it could meet the frozen worker.
        await showsPhase(following, 'watching');
        environment.sandbox.changeJob(following.key, { status: 'completed' });
        expect((await following.result()).followUp).toMatchObject({
          delivery: { verdict: 'accepted', confirmedBy: 'read', sends: 1 },
          evidence: 'seen-active',
        });
        other.signal('SIGKILL');
        await other.exited;
        await wakes(scenario);
        expect(following.posts().map(({ processed }) => processed)).toEqual([true]);
      });
    },
    LIMIT_MS,
  );
});
