import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { ENDLESS, UNKNOWN } from '../../harness/following';
import { type ActivityOptionsChange, Operator } from '../../harness/operator';
import { pending } from '../../harness/pending-poll';
import {
  ANSWERED,
  endAfterReading,
  FOUND_BY_READING,
  killAndReplace,
  NOBODY_KNOWS,
  NOT_PROCESSED,
  onWorker,
  PROCESSED,
  type Scenario,
  untilHeld,
} from '../../harness/scenario';

/**
 * What an operator can do to a pending send with `temporal activity`. The send is given up 19 s after its start (two
 * exchanges of 2 s and 15 s); two workers start one after the other. It takes 20 to 60 s on two cores.
 */
jest.setTimeout(150_000);

const SEND = 'sendMessage';

const pendingSend = ({ following }: Scenario) => pending(following, SEND);

type Operation = (operator: Operator, workflowId: string) => Promise<boolean>;

/** Does it by the operator, who finds a pending send. */
async function operate({ environment, following }: Scenario, act: Operation): Promise<void> {
  expect(await act(new Operator(environment.client), following.handle.workflowId)).toBe(true);
}

const raise =
  (options: ActivityOptionsChange = { maximumAttempts: 3 }): Operation =>
  (operator, id) =>
    operator.changeOptions(id, SEND, options);
const reset =
  (heartbeats: boolean): Operation =>
  (operator, id) =>
    operator.reset(id, SEND, heartbeats);
const pause: Operation = (operator, id) => operator.pause(id, SEND);
const unpause: Operation = (operator, id) => operator.unpause(id, SEND);

/** With the POST processed and unanswered, the operation is done and the worker is killed. */
function expectAfterKill(operation: Operation, test: (scenario: Scenario) => Promise<void>): Promise<void> {
  return onWorker({ job: ENDLESS, fault: PROCESSED }, async (scenario) => {
    await untilHeld(scenario);
    await operate(scenario, operation);
    await killAndReplace(scenario);
    await test(scenario);
  });
}

/** The running turn then proves the delivery, and nothing is sent again. */
async function expectFoundByReading(scenario: Scenario): Promise<void> {
  expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
}

/** It is cancelled, and leaves the receipt that nobody can tell. */
async function expectUnknownWhenCancelled({ following }: Scenario): Promise<void> {
  await following.handle.cancel();
  expect(await following.receiptOfCancelled()).toMatchObject({ delivery: UNKNOWN });
  expect(following.posts()).toHaveLength(1);
}

describe('a pending send whose attempts are raised, and whose worker is killed', () => {
  it.concurrent('with the POST not processed: the next attempt sends nothing, and nobody can tell', () =>
    onWorker({ fault: NOT_PROCESSED }, async (scenario) => {
      await untilHeld(scenario);
      await operate(scenario, raise());
      await killAndReplace(scenario);
      expect(await scenario.following.ending()).toEqual({ ...NOBODY_KNOWS, posts: [false] });
    }),
  );

  it.concurrent('with the POST processed, cancelled before the next attempt: the memo says unknown', () =>
    onWorker({ job: ENDLESS, fault: PROCESSED }, async (scenario) => {
      await untilHeld(scenario);
      await operate(scenario, raise());
      const { client, taskQueues } = scenario.environment;
      // Nobody takes the next attempt up.
      await new Operator(client).limit(taskQueues.send, 0);
      await killAndReplace(scenario);
      const second = async () => ((await pendingSend(scenario))?.attempt ?? 0) > 1;
      await eventually('the second attempt waits', second, { timeoutMs: 90_000 });
      await expectUnknownWhenCancelled(scenario);
    }),
  );

  it.concurrent('before it has asked for its permission: the next attempt sends the message, once', () =>
    onWorker({ hold: ['RecordActivityTaskHeartbeat', 'call'] }, async (scenario) => {
      await scenario.held.arrived();
      await operate(scenario, raise());
      await killAndReplace(scenario);
      expect(await scenario.following.ending()).toEqual(ANSWERED);
    }),
  );
});

describe('a pending send with its POST processed, whose worker is killed', () => {
  it.concurrent.each([
    ['with its attempts raised', raise()],
    // Start-to-close ends after 19 s, and the next attempt, a second later, no longer fits.
    [
      'with its attempts raised and no time for one',
      raise({ maximumAttempts: 3, scheduleToClose: '19500ms' }),
    ],
    ['reset, keeping its heartbeats', reset(false)],
    ['reset, and its heartbeats too', reset(true)],
  ])('%s: no next attempt sends, and the turn proves the delivery', (_, operation) =>
    expectAfterKill(operation, expectFoundByReading),
  );
});

describe('a pending send that is paused', () => {
  it.concurrent('with its POST under way ends with the answer of the POST', () =>
    onWorker({ fault: { ...PROCESSED, times: 1 }, env: { AGENT_API_TIMEOUT: '20s' } }, async (scenario) => {
      await untilHeld(scenario);
      await operate(scenario, pause);
      scenario.environment.sandbox.release();
      expect(await scenario.following.ending()).toEqual(ANSWERED);
    }),
  );

  it.concurrent('with its POST under way, its worker killed: it is not sent again when it goes on', () =>
    expectAfterKill(pause, async (scenario) => {
      await sleep(2_000);
      await operate(scenario, unpause);
      await expectFoundByReading(scenario);
    }),
  );

  it.concurrent(
    'with its POST under way, its worker killed, and cancelled: it ends in time, as unknown',
    () => expectAfterKill(pause, expectUnknownWhenCancelled),
  );

  it.concurrent('in its queue is sent once it goes on, and not before', () =>
    onWorker({ fault: { name: 'http-503', operation: 'get', times: 2 } }, async (scenario) => {
      const { environment, following } = scenario;
      const operator = new Operator(environment.client);
      await operator.limit(environment.taskQueues.send, 0);
      await eventually('the send waits in its queue', () => pendingSend(scenario), {
        until: ({ lastStartedTime }) => !lastStartedTime,
      });
      await operate(scenario, pause);
      await operator.limit(environment.taskQueues.send, null);
      await sleep(3_000);
      expect(following.posts()).toEqual([]);
      await operate(scenario, unpause);
      expect(await following.ending()).toEqual(ANSWERED);
    }),
  );
});
