import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { keyFromText } from '../../src/agent-api/secret-source';
import { TestBatch, FASTEST_OPTIONS } from '../harness/test-batch';
import { Environment } from '../harness/environment';
import { eventsOf } from '../harness/reset';
import { temporaryFolder } from '../harness/temporary-folder';
import { takenNotificationId } from './taken-notification-id';

const bundlePath = path.join(temporaryFolder(), 'bundle.js');

// Proves N1.
it('if the Temporal server rejects the start of a notification, follow-ups and batches still end with their result', async () => {
  const { code } = await bundleWorkflowCode({
    workflowsPath: path.join(__dirname, '../../src/workflows'),
    workflowInterceptorModules: [require.resolve('./taken-notification-id')],
    logger: new DefaultLogger('WARN'),
  });
  await writeFile(bundlePath, code);
  const secrets = keyFromText(`whsec_${Buffer.alloc(24, 'a').toString('base64')}`);
  const environment = await Environment.open({ bundlePath, notify: { url: 'http://127.0.0.1:9', secrets } });
  const workflowId = takenNotificationId(environment.taskQueue);
  const taken = await environment.client.workflow.start('taken', { workflowId, taskQueue: workflowId });

  const rejected = async (id: string) =>
    (await eventsOf(environment.client.workflow.getHandle(id))).filter(
      (event) => event.startChildWorkflowExecutionFailedEventAttributes,
    ).length;
  const completed = await environment.follow({}, FASTEST_OPTIONS);
  expect(await completed.outcomeSummary()).toMatchObject({ status: 'completed', posts: [true] });
  const failed = await environment.follow({}, FASTEST_OPTIONS, { name: 'not-found' });
  expect((await failed.failure()).type).toBe('JobNotFound');
  const batch = new TestBatch(environment).addItems(1);
  await batch.start();
  expect(await batch.handle.result()).toMatchObject({ state: 'done', summary: { ended: 1 } });
  for (const id of [completed.handle.workflowId, failed.handle.workflowId, batch.workflow.workflowId])
    expect(await rejected(id)).toBe(1);
  await taken.terminate();
  await environment.close();
});
