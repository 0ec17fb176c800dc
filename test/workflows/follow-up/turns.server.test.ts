import { expect, it } from '@jest/globals';
import { ENDLESS } from '../../harness/following';
import { Operator } from '../../harness/operator';
import { sharedEnvironment } from '../../harness/shared-environment';

const { open } = sharedEnvironment();

// Proves S2.
it('a follow-up waits for the turn of another one to the same job, and takes it when that has ended', async () => {
  const environment = await open();
  // In a job that is at rest, which it does not believe for an hour.
  const asked = { whenActive: 'wait', confirm: '1h', deadline: '3h' } as const;
  const first = await environment.follow(ENDLESS, asked);
  await first.progressWhen(({ phase }) => phase === 'watching');
  first.changeJob({ status: 'completed' });
  const second = await environment.send({ ...first.key, whenActive: 'wait' });
  const words = `waiting for the turn of ${first.handle.workflowId}`;
  await second.progressWhen(({ phase, lastAnswer }) => phase === 'waiting' && lastAnswer === words);
  expect(first.posts()).toHaveLength(1);
  await first.handle.terminate();
  // It asks now, not ten seconds after it asked last.
  await new Operator(environment.client).reset(second.handle.workflowId, 'takeTurn');
  await second.reached({ operation: 'message' }, { atLeast: 2 });
  await second.handle.terminate();
});
