import { expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { ENDLESS, type Following, NOT_SENT } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { pending } from '../../harness/pending-poll';
import { eventsOf, resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment();

/** One that has sent its message and has its turn, in a job that is at rest; it does not believe that for an hour. */
async function inItsTurn() {
  const environment = await open();
  const asked = { whenActive: 'wait', confirm: '1h', deadline: '3h' } as const;
  const first = await environment.follow(ENDLESS, asked);
  await first.progressWhen(({ phase }) => phase === 'watching');
  first.changeJob({ status: 'completed' });
  const words = `waiting for the turn of ${first.handle.workflowId}`;
  const next = (deadline: '10m' | '4s' = '10m') =>
    environment.send({ ...first.key, whenActive: 'wait', deadline });
  /** Another one for the same job, once it waits. */
  const waiting = async () => {
    const second = await next();
    await second.progressWhen(({ phase, lastAnswer }) => phase === 'waiting' && lastAnswer === words);
    return second;
  };
  return { first, next, waiting, words };
}

/** Has it ask for the turn now, not ten seconds after it asked last, and waits until it has. */
async function askAgain(following: Following): Promise<void> {
  const { client } = await open();
  const before = await lastAsked(following);
  await new Operator(client).reset(following.handle.workflowId, 'takeTurn', false);
  await eventually('it has asked again', async () => {
    const asked = await lastAsked(following);
    return asked === null || asked !== before;
  });
}

/** Null where it no longer asks. */
async function lastAsked(following: Following): Promise<string | null> {
  const asks = await pending(following, 'takeTurn');
  return asks === undefined ? null : JSON.stringify(asks.lastStartedTime);
}

// Proves S2.
it.concurrent('a reset follow-up keeps its turn; one that has ended leaves it to the next', async () => {
  const { first, next, waiting, words } = await inItsTurn();
  const second = await waiting();
  const [beginning] = await workflowTasks(first.handle);
  const again = await resetToTask(first.handle, beginning);
  await first.progressWhen(({ phase }) => phase === 'reconciling');
  await askAgain(second);
  await second.progressWhen(({ lastAnswer }) => lastAnswer === words);
  expect(first.posts()).toHaveLength(1);
  await again.terminate();
  await askAgain(second);
  await second.reached({ operation: 'message' }, { atLeast: 2 });
  second.changeJob({ status: 'completed' });
  await second.result();
  // It takes the turn at once.
  const third = await next();
  await third.reached({ operation: 'message' }, { atLeast: 3 });
  const attempts = (await eventsOf(third.handle)).flatMap(
    (event) => event.activityTaskStartedEventAttributes?.attempt ?? [],
  );
  expect(attempts[0]).toBe(1);
  await third.handle.terminate();
});

// Proves S2.
it.concurrent(
  'a wait for the turn ends at the deadline, or when it is cancelled, with nothing sent',
  async () => {
    const { first, next, waiting, words } = await inItsTurn();
    const late = await next('4s');
    const cancelled = await waiting();
    await cancelled.handle.cancel();
    expect((await cancelled.receiptOfCancelled()).delivery).toEqual(NOT_SENT);
    const { type, message, details } = await late.failure();
    expect(type).toBe('DeadlineExceeded');
    expect(message).toContain(words);
    expect(details.followUp.delivery).toEqual(NOT_SENT);
    expect(first.posts()).toHaveLength(1);
    await first.handle.terminate();
  },
);
