import { expect, it } from '@jest/globals';
import { eventually } from '../../harness/eventually';
import { ENDLESS, NOT_SENT } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { resetToTask, workflowTasks } from '../../harness/reset';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment();

// Proves S2.
it('a follow-up keeps its turn, also when it is reset, and leaves it to the next when it has ended', async () => {
  const environment = await open();
  // In a job that is at rest, which it does not believe for an hour.
  const asked = { whenActive: 'wait', confirm: '1h', deadline: '3h' } as const;
  const first = await environment.follow(ENDLESS, asked);
  await first.progressWhen(({ phase }) => phase === 'watching');
  first.changeJob({ status: 'completed' });
  const words = `waiting for the turn of ${first.handle.workflowId}`;
  const waiting = async (deadline: '10m' | '4s' = '10m') => {
    const next = await environment.send({ ...first.key, whenActive: 'wait', deadline });
    if (deadline === '10m') await next.progressWhen(({ lastAnswer }) => lastAnswer === words);
    return next;
  };
  const late = await waiting('4s');
  const second = await waiting();
  const cancelled = await waiting();
  await cancelled.handle.cancel();
  expect((await cancelled.receiptOfCancelled()).delivery).toEqual(NOT_SENT);

  /** Has it ask now, not ten seconds after it asked last. */
  const askAgain = () => new Operator(environment.client).reset(second.handle.workflowId, 'takeTurn');
  const asking = async () => {
    const { raw } = await second.handle.describe();
    return raw.pendingActivities?.find(({ activityType }) => activityType?.name === 'takeTurn');
  };
  const again = await resetToTask(first.handle, (await workflowTasks(first.handle))[0]);
  await askAgain();
  await eventually('it is answered', async () => {
    const { attempt = Infinity } = (await asking()) ?? {};
    return Number(attempt) > 1;
  });
  expect(await asking()).toBeDefined();
  const { type, details } = await late.failure();
  expect(type).toBe('DeadlineExceeded');
  expect(details.followUp.delivery).toEqual(NOT_SENT);
  expect(first.posts()).toHaveLength(1);

  await again.terminate();
  await askAgain();
  await second.reached({ operation: 'message' }, { atLeast: 2 });
  await second.handle.terminate();
});
