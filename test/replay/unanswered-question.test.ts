import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { Context } from '@temporalio/activity';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { FOLLOW_UP_WORKFLOW } from '../../src/core/names';
import { temporal } from '../harness/temporal';

Runtime.install({ logger: new DefaultLogger('ERROR') });

const { address, bundlePath } = temporal();
const workflowBundle = { codePath: bundlePath };

/** A cancelled follow-up asks for 5 s what its send has recorded: the send ends after that. */
const SEND_ENDS_AFTER_MS = 6_000;

it('a follow-up that was cancelled while nobody told what its send had recorded is replayed', async () => {
  const taskQueue = `unanswered-${randomUUID().slice(0, 8)}`;
  const moments = new EventEmitter();
  const sending = once(moments, 'sending');
  const activities = {
    workerSettings: () =>
      Promise.resolve({
        readTaskQueue: taskQueue,
        sendTaskQueue: taskQueue,
        httpTimeoutMs: 1_000,
        pollLimitMs: 60_000,
      }),
    pendingDetails: () => {
      moments.emit('asked');
      return Context.current().cancelled;
    },
    sendMessage: async () => {
      const asked = once(moments, 'asked');
      moments.emit('sending');
      await asked;
      await sleep(SEND_ENDS_AFTER_MS);
      return { kind: 'not-permitted', message: 'the follow-up is cancelled' };
    },
  };
  const [connection, clientConnection] = await Promise.all([
    NativeConnection.connect({ address }),
    Connection.connect({ address }),
  ]);
  const client = new Client({ connection: clientConnection });
  const worker = await Worker.create({ connection, taskQueue, workflowBundle, activities });
  const workflowId = `follow-up-of-${taskQueue}`;
  const history = await worker.runUntil(async () => {
    const args = [{ projectId: 'p', jobId: 'j', prompt: 'x' }];
    const handle = await client.workflow.start(FOLLOW_UP_WORKFLOW, { workflowId, taskQueue, args });
    await sending;
    await handle.cancel();
    await expect(handle.result()).rejects.toThrow('cancelled');
    return handle.fetchHistory();
  });
  await Promise.all([connection.close(), clientConnection.close()]);

  const timedOut = history.events?.some(
    (event) => event.markerRecordedEventAttributes?.failure?.timeoutFailureInfo,
  );
  expect(timedOut).toBe(true);
  await expect(Worker.runReplayHistory({ workflowBundle }, history, workflowId)).resolves.toBeUndefined();
});
