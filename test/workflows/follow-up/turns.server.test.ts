import { expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { ENDLESS, type Following, NOT_SENT } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { pending } from '../../harness/pending-poll';
import { eventsOf, resetBefore } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open, newBatch } = sharedEnvironment();

/** One that has sent its message and has its turn; its job is at rest, and it does not believe it for an hour. */
async function inItsTurn() {
  const environment = await open();
  const asked = { whenActive: 'wait', confirm: '1h', deadline: '3h' } as const;
  const first = await environment.follow(ENDLESS, asked);
  const { workflowId } = first.handle;
  await first.progressWhen(({ phase }) => phase === 'watching');
  first.changeJob({ status: 'completed' });
  /** Another one for the same job. */
  const next = (deadline: '10m' | '4s' = '10m') =>
    environment.send({ ...first.key, whenActive: 'wait', deadline });
  return { first, next, words: `waiting for the turn of ${workflowId}` };
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
it.concurrent('a follow-up that waits for a job is sent when the one before it has ended', async () => {
  const environment = await open();
  const first = await environment.follow(ENDLESS, { whenActive: 'wait' });
  await first.reached({ operation: 'message' });
  const second = await environment.send({ ...first.key, whenActive: 'wait' });
  const words = `waiting for the turn of ${first.handle.workflowId}`;
  await second.progressWhen(({ phase, lastAnswer }) => phase === 'waiting' && lastAnswer === words);
  first.changeJob({ status: 'completed' });
  const { settledAt } = (await first.result()).followUp;
  await askAgain(second);
  await second.reached({ operation: 'message' }, { atLeast: 2 });
  second.changeJob({ status: 'completed' });
  const { sentAt } = (await second.result()).followUp;
  expect([sentAt, settledAt].sort()).toEqual([settledAt, sentAt]);
});

// Proves S2.
it.concurrent('a reset follow-up keeps its turn, and a terminated one leaves it to the next', async () => {
  const { first, next, words } = await inItsTurn();
  const second = await next();
  await second.progressWhen(({ lastAnswer }) => lastAnswer === words);
  const again = await resetBefore('start', first.handle);
  await first.progressWhen(({ phase }) => phase === 'reconciling');
  await askAgain(second);
  await second.progressWhen(({ lastAnswer }) => lastAnswer === words);
  expect(first.posts()).toHaveLength(1);
  await again.terminate();
  await askAgain(second);
  await second.reached({ operation: 'message' }, { atLeast: 2 });
  await second.handle.terminate();
});

// Proves S2.
it.concurrent(
  'a wait for the turn ends at the deadline, or when it is cancelled, with nothing sent',
  async () => {
    const { first, next, words } = await inItsTurn();
    const [late, cancelled] = await Promise.all([next('4s'), next()]);
    await cancelled.progressWhen(({ lastAnswer }) => lastAnswer === words);
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

// Proves S2.
it.concurrent(
  'a turn whose follow-up has ended is taken at once, as by the items of a batch for one job',
  async () => {
    const batch = await newBatch();
    const wait = { whenActive: 'wait' } as const;
    const key = batch.add({}, wait);
    for (const prompt of ['Then rebase.', 'Then squash.']) batch.again(key, { ...wait, prompt });
    await batch.start();
    expect((await batch.handle.result()).summary).toMatchObject({ byStatus: { completed: 3 } });
    expect(batch.messages()).toEqual([3, 3, 3]);
    for (const item of [1, 2]) {
      const events = await eventsOf(await batch.itemHandle(item));
      const attempts = events.flatMap((event) => event.activityTaskStartedEventAttributes?.attempt ?? []);
      // The first activity takes the turn.
      expect(attempts[0]).toBe(1);
    }
  },
);
