import { describe, expect, it } from '@jest/globals';
import { ENDLESS } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { pending } from '../../harness/pending-poll';
import {
  endAfterReading,
  FOUND_BY_READING,
  killAndReplace,
  onWorker,
  PROCESSED,
  type Scenario,
  untilHeld,
} from '../../harness/scenario';

/*
 * What an operator can do to a pending send with `temporal activity`. The send is given up 19 s after its start (two
 * exchanges of 2 s and 15 s); two workers start one after the other. It takes 20 to 50 s on two cores.
 */

const SEND = 'sendMessage';

type Operation = (operator: Operator, workflowId: string) => Promise<boolean>;

/** Does it by the operator, who finds a pending send. */
async function operate({ environment, following }: Scenario, act: Operation): Promise<void> {
  expect(await act(new Operator(environment.client), following.handle.workflowId)).toBe(true);
}

/** With the POST processed and unanswered, the operation is done and the worker is killed. */
function expectFoundAfterKill(
  operation: Operation,
  meanwhile: (scenario: Scenario) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  return onWorker({ job: ENDLESS, fault: PROCESSED }, async (scenario) => {
    await untilHeld(scenario);
    await operate(scenario, operation);
    await killAndReplace(scenario);
    await meanwhile(scenario);
    // The running turn then proves the delivery, and nothing is sent again.
    expect(await endAfterReading(scenario)).toEqual(FOUND_BY_READING);
  });
}

describe('a pending send with its POST processed, whose worker is killed', () => {
  // Proves P1.
  it.concurrent('with no other attempt allowed: the turn proves the delivery', () =>
    expectFoundAfterKill((operator, id) => operator.allowAttempts(id, SEND, 1)),
  );

  // Proves P1.
  it.concurrent('after a reset: no next attempt sends, and the turn proves the delivery', () =>
    expectFoundAfterKill((operator, id) => operator.reset(id, SEND, false)),
  );

  // Proves P2.
  it.concurrent('while it is paused: it is not sent again when it goes on', () =>
    expectFoundAfterKill(
      (operator, id) => operator.pause(id, SEND),
      async (scenario) => {
        expect(await pending(scenario.following, SEND)).toMatchObject({ paused: true });
        await operate(scenario, (operator, id) => operator.unpause(id, SEND));
      },
    ),
  );
});
