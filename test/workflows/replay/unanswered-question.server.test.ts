import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { expect, it } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { Context } from '@temporalio/activity';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { FOLLOW_UP_WORKFLOW } from '../../../src/core/names';
import { temporal } from '../../harness/temporal';

Runtime.install({ logger: new DefaultLogger('ERROR') });

const { address, bundlePath } = temporal();
const workflowBundle = { codePath: bundlePath };

// Proves P3.
it.concurrent.each([
  // A cancelled follow-up asks for 5 s what its send has recorded.
  ['hangs', () => Context.current().cancelled],
  ['fails', () => Promise.reject(new Error('it can not be decoded'))],
])(
  'a follow-up that was cancelled while the question for its send %s ends, and is replayed',
  async (how, answer) => {
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
      pendingDetails: () => answer().finally(() => moments.emit('unanswered')),
      sendMessage: async () => {
        const unanswered = once(moments, 'unanswered');
        moments.emit('sending');
        await unanswered;
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

    const failures = history.events?.flatMap((event) => event.markerRecordedEventAttributes?.failure ?? []);
    expect(failures?.map(({ timeoutFailureInfo }) => Boolean(timeoutFailureInfo))).toContain(how === 'hangs');
    await expect(Worker.runReplayHistory({ workflowBundle }, history, workflowId)).resolves.toBeUndefined();
  },
);
