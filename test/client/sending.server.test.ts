import { expect, it } from '@jest/globals';
import { eventually } from '../../tools/lib/eventually';
import {
  ENDLESS_TURN,
  NOT_SENT_DELIVERY,
  progressFromWorker,
  UNKNOWN_DELIVERY,
} from '../harness/follow-up-under-test';
import { sharedEnvironment } from '../harness/shared-environment';
import { runCli } from '../cli/commands/run-cli';

const { open } = sharedEnvironment();

// Proves L5.
it('while a message is being sent, reports have the verdict not-sent until the send permission is recorded, and then unknown', async () => {
  const environment = await open();
  const { followUps, sandbox } = environment;
  const holds = [
    { name: 'hold', operation: 'get', times: 1 },
    { name: 'hold', operation: 'message', times: 1 },
  ] as const;
  const following = await environment.follow(ENDLESS_TURN, {}, ...holds);
  const { workflowId } = following.handle;
  const handle = followUps.getHandle(workflowId);
  const status = async (...more: string[]) =>
    (await runCli(environment, ['status', workflowId, ...more])).stdout;

  await following.waitForRequest({ operation: 'get', fault: 'hold' });
  const before = await progressFromWorker(handle);
  expect(before).toMatchObject({ phase: 'starting', delivery: NOT_SENT_DELIVERY });
  expect(before.lastResponse).toBe('a worker is sending the message');
  expect((await handle.describe()).verdict).toBeNull();
  expect(await status()).toMatch(/^delivery +not-sent, 0 sends$/m);

  sandbox.release(following.key);
  await following.waitForRequest({ operation: 'message', fault: 'hold' });
  const during = await progressFromWorker(handle);
  expect(during).toMatchObject({ phase: 'starting', delivery: UNKNOWN_DELIVERY });
  expect(during).not.toHaveProperty('deliveryBeforeSend');
  expect(during.deliveryUnknownReason).toMatch(/is being sent/);
  expect((await handle.describe()).verdict).toBe('unknown');
  const deadline = await handle.extendDeadline('3h');
  expect(deadline).toMatchObject({ delivery: UNKNOWN_DELIVERY });
  for (const text of [await status(), await status('--json')]) {
    expect(text).toMatch(/unknown/);
    expect(text).not.toMatch(/not-sent|nothing sent yet|0 sends|"sends":\s*0/);
  }
  const list = async () => (await runCli(environment, ['list', '--project', following.key.projectId])).stdout;
  const listed = await eventually('the follow-up is listed', list, {
    until: (text) => text.includes(workflowId),
  });
  expect(listed).not.toMatch(/not-sent/);

  sandbox.release(following.key);
  await following.waitForProgress(({ phase }) => phase === 'watching');
  expect(await progressFromWorker(handle)).toMatchObject({ delivery: { verdict: 'accepted', sends: 1 } });
  await following.handle.terminate();
});
