import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { MEMO_RECEIPT } from '../../src/core/names';
import { eventually } from '../harness/eventually';
import { Operator } from '../harness/operator';
import { behindGate, type Ending, failure, onWorker, result, type Scenario, showsPhase } from './scenario';

/**
 * What an operator can do to a pending send with `temporal activity`. The send is given up 19 s after its start (two
 * exchanges of 2 s and 15 s); two workers start one after the other. It takes 20 to 60 s on two cores.
 */
const LIMIT_MS = 150_000;

const ENDLESS = { turn: { durationMs: null } } as const;
const ONCE = { posts: 1, processed: 1 };
const BY_RESPONSE = { verdict: 'accepted', confirmedBy: 'response', sends: 1 };
const BY_READ = { verdict: 'accepted', confirmedBy: 'read', sends: 1 };
const UNKNOWN = { verdict: 'unknown', confirmedBy: null, sends: 1 };

const SEND = 'sendMessage';

const processed = { name: 'hold', operation: 'message', parameters: { processed: 'before' } } as const;
const never = { name: 'hold', operation: 'message', parameters: { processed: 'never' } } as const;

async function untilHeld({ environment, following }: Scenario): Promise<void> {
  await environment.sandbox.journal.waitFor({ ...following.key, fault: 'hold' }, { timeoutMs: 30_000 });
}

/** Another worker of the same queues takes the place of the one that is killed. */
async function killAndReplace({ environment, worker }: Scenario): Promise<void> {
  worker.signal('SIGKILL');
  await worker.exited;
  await environment.startWorker();
}

async function pendingSend({ following }: Scenario) {
  const { raw } = await following.handle.describe();
  return raw.pendingActivities?.find(({ activityType }) => activityType?.name === SEND);
}

/** Does it by the operator, who finds a pending send. */
async function operate(
  { environment, following }: Scenario,
  act: (operator: Operator, workflowId: string) => Promise<boolean>,
): Promise<void> {
  expect(await act(new Operator(environment.client), following.handle.workflowId)).toBe(true);
}

/** Cancels it, and waits for its end. @returns the receipt that it leaves in its memo */
async function cancelledReceipt({ handle }: Scenario['following']): Promise<unknown> {
  await handle.cancel();
  await expect(handle.result()).rejects.toThrow('Workflow execution cancelled');
  const { memo } = await handle.describe();
  return memo?.[MEMO_RECEIPT];
}

const FOUND_BY_READING = { status: 'completed', delivery: BY_READ, evidence: 'seen-active', ...ONCE };

/** How it ends when the job comes to rest after the delivery was found by reading. */
async function endAfterReading({ environment, following }: Scenario): Promise<Ending> {
  await showsPhase(following, 'watching');
  environment.sandbox.changeJob(following.key, { status: 'completed' });
  return result(following);
}

describe('a pending send whose attempts are raised, and whose worker is killed', () => {
  const raise = (scenario: Scenario) =>
    operate(scenario, (operator, id) => operator.changeOptions(id, SEND, { maximumAttempts: 3 }));

  it.concurrent(
    'with the POST processed: the next attempt sends nothing, and the running turn proves the delivery',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await raise(scenario);
        await killAndReplace(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the POST not processed: the next attempt sends nothing, and nobody can tell',
    () =>
      onWorker({ fault: never }, async (scenario) => {
        await untilHeld(scenario);
        await raise(scenario);
        await killAndReplace(scenario);
        expect(await failure(scenario.following)).toEqual({
          ...{ type: 'DeliveryUnknown', delivery: UNKNOWN, evidence: null, posts: 1, processed: 0 },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with the POST processed, and cancelled before the next attempt: the memo does not say that nothing was sent',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await raise(scenario);
        const { environment, following } = scenario;
        // Nobody takes the next attempt up.
        await new Operator(environment.client).limit(environment.taskQueues.sendTaskQueue, 0);
        await killAndReplace(scenario);
        await eventually(
          'the second attempt waits',
          async () => ((await pendingSend(scenario))?.attempt ?? 0) > 1,
          { timeoutMs: 90_000 },
        );
        expect(await cancelledReceipt(following)).toMatchObject({ delivery: UNKNOWN });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'before it has asked for its permission: the next attempt sends the message, once',
    () =>
      behindGate(['RecordActivityTaskHeartbeat', 'call'], {}, async (scenario) => {
        await scenario.held.arrived();
        await raise(scenario);
        await killAndReplace(scenario);
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'completed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with no time for a next attempt: the POST is remembered, and nothing is sent',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        // Start-to-close ends after 19 s, and the next attempt, a second later, no longer fits.
        const options = { maximumAttempts: 3, scheduleToClose: '19500ms' } as const;
        await operate(scenario, (operator, id) => operator.changeOptions(id, SEND, options));
        await killAndReplace(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      }),
    LIMIT_MS,
  );
});

describe('a pending send that is reset, and whose worker is killed with the POST under way', () => {
  it.concurrent(
    'keeping its heartbeats: the next attempt sends nothing',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await operate(scenario, (operator, id) => operator.reset(id, SEND, false));
        await killAndReplace(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'and its heartbeats too: nothing is sent',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await operate(scenario, (operator, id) => operator.reset(id, SEND, true));
        await killAndReplace(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      }),
    LIMIT_MS,
  );
});

describe('a pending send that is paused', () => {
  const pause = (scenario: Scenario) => operate(scenario, (operator, id) => operator.pause(id, SEND));
  const unpause = (scenario: Scenario) => operate(scenario, (operator, id) => operator.unpause(id, SEND));

  it.concurrent(
    'with its POST under way ends with the answer of the POST',
    () =>
      onWorker({ fault: { ...processed, times: 1 }, env: { AGENT_API_TIMEOUT: '20s' } }, async (scenario) => {
        await untilHeld(scenario);
        await pause(scenario);
        scenario.environment.sandbox.release();
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'completed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with its POST under way, and whose worker is killed, is not sent again when it goes on',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await pause(scenario);
        await killAndReplace(scenario);
        await sleep(2_000);
        await unpause(scenario);
        expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'with its POST under way, whose worker is killed, and which is cancelled, ends within its time limit as unknown',
    () =>
      onWorker({ job: ENDLESS, fault: processed }, async (scenario) => {
        await untilHeld(scenario);
        await pause(scenario);
        await killAndReplace(scenario);
        expect(await cancelledReceipt(scenario.following)).toMatchObject({ delivery: UNKNOWN });
        expect(scenario.following.posts()).toHaveLength(1);
      }),
    LIMIT_MS,
  );

  it.concurrent(
    'in its queue is sent once it goes on, and not before',
    () =>
      onWorker({ fault: { name: 'http-503', operation: 'get', times: 2 } }, async (scenario) => {
        const operator = new Operator(scenario.environment.client);
        await operator.limit(scenario.environment.taskQueues.sendTaskQueue, 0);
        await eventually('the send waits in its queue', async () => {
          const pending = await pendingSend(scenario);
          return pending !== undefined && !pending.lastStartedTime;
        });
        await pause(scenario);
        await operator.limit(scenario.environment.taskQueues.sendTaskQueue, null);
        await sleep(3_000);
        expect(scenario.following.posts()).toEqual([]);
        await unpause(scenario);
        expect(await result(scenario.following)).toEqual({
          ...{ status: 'completed', delivery: BY_RESPONSE, evidence: 'seen-active', ...ONCE },
        });
      }),
    LIMIT_MS,
  );
});
