import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { pageWorkflowId } from '../../src/core/ids';
import { clientOf } from '../client/client-under-test';
import { eventually } from '../harness/eventually';
import { type Environment, QUICK } from '../harness/environment';
import { Operator } from '../harness/operator';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment();

const JOB = '"id":"1","source":{"repository":null,"ref":null},"model":null,"createdAt":null';

/** What is no result of ours; the last one holds half a character, as JSON can write it. */
const FOREIGN = [
  'null',
  '{}',
  '"sent"',
  '{"kind":"posted","outcome":{"verdict":"accepted","job":{}}}',
  `{"kind":"posted","baseline":null,"sentAt":1,"outcome":{"verdict":"accepted","job":{${JOB},"status":"\\ud800","prLink":null,"archivedAt":null}}}`,
];

async function complete(
  { client }: Environment,
  workflowId: string,
  type: string,
  json: string,
): Promise<void> {
  const operator = new Operator(client);
  await eventually(`${type} is completed by hand`, () => operator.complete(workflowId, type, json), {
    timeoutMs: 20_000,
  });
}

describe('an activity that an operator completes with what is no result of it', () => {
  it.concurrent.each(FOREIGN)('leaves the delivery of a send unknown: %s', async (json) => {
    const environment = await open();
    const { projectId, jobId } = environment.sandbox.addJob({ projectId: 'send-by-hand' });
    environment.sandbox.setFault({ name: 'hold', projectId, jobId, operation: 'message', times: 1 });
    const following = await environment.send({ projectId, jobId });
    await environment.sandbox.journal.waitFor({ projectId, jobId, operation: 'message' });
    await complete(environment, following.handle.workflowId, 'sendMessage', json);
    const { type, details } = await following.failure();
    environment.sandbox.release({ projectId, jobId });
    expect(type).toBe('DeliveryUnknown');
    expect(details.followUp.delivery).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
  });

  it.concurrent.each([
    { type: 'getJob', timerPolls: 'all', json: '{}' },
    { type: 'getJob', timerPolls: 'all', json: '{"kind":"job","job":{"id":"1","status":7}}' },
    { type: 'pollJob', timerPolls: 1, json: '{}' },
    { type: 'pollJob', timerPolls: 1, json: '{"answer":null,"before":{"polls":"many"}}' },
  ] as const)('is a failed read: $type, $json', async ({ type, timerPolls, json }) => {
    const environment = await open();
    const following = await environment.follow({ turn: { durationMs: null } }, { polling: { timerPolls } });
    const { key } = following;
    await following.progressWhen(({ polls }) => polls > 0);
    environment.sandbox.setFault({ name: 'hold', ...key, operation: 'get', times: 1 });
    await complete(environment, following.handle.workflowId, type, json);
    environment.sandbox.release(key);
    environment.sandbox.changeJob(key, { status: 'completed' });
    const { status, followUp } = await following.result();
    expect([status, followUp.observed['read failed']]).toEqual(['completed', 1]);
  });

  it.concurrent.each(['{}', '{"batchIsGone":false,"lost":7}'])(
    'is a look of a page that is made again: %s',
    async (json) => {
      const environment = await open();
      const { projectId, jobId } = environment.sandbox.addJob({ turn: { durationMs: null } });
      const { batches } = clientOf(environment);
      const request = { projectId, jobId, prompt: 'Fix the broken links.', ...QUICK };
      const started = await batches.start([request], { batchId: `by-hand-${randomUUID().slice(0, 8)}` });
      const batch = batches.getHandle(started.batchId);
      const { run } = await batch.describe();
      await environment.sandbox.journal.waitFor({ projectId, jobId, operation: 'message' });
      await complete(environment, pageWorkflowId(started.batchId, run, 1), 'pageTrouble', json);
      environment.sandbox.changeJob({ projectId, jobId }, { status: 'completed' });
      expect(await batch.result()).toMatchObject({ state: 'done', summary: { byStatus: { completed: 1 } } });
    },
  );
});
