import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { CancelledFailure, type DataConverter, TerminatedFailure } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
import { requestConflict } from '../../src/client/errors';
import { followUpWorkflowId } from '../../src/core/ids';
import { ENCRYPTING } from '../harness/encryption';
import { eventually } from '../harness/eventually';
import { ENDLESS } from '../harness/following';
import { sharedEnvironment } from '../harness/shared-environment';
import { temporal } from '../harness/temporal';
import type { NewJob } from '../../sandbox';
import type * as callers from './callers';

/** The children have the clock of their parent. */
const { open } = sharedEnvironment({ skipsTime: true });
const QUEUE = `callers-${randomUUID()}`;
let connection: NativeConnection;
let worker: Worker;
let running: Promise<void>;

beforeAll(async () => {
  connection = await NativeConnection.connect({ address: temporal().address });
  const workflowsPath = path.join(__dirname, 'callers.ts');
  worker = await Worker.create({ connection, taskQueue: QUEUE, workflowsPath });
  running = worker.run();
});

afterAll(async () => {
  worker.shutdown();
  await running;
  await connection.close();
});

/** One of the team's workflows, started with a follow-up to a job of its own. */
async function start(
  type: keyof typeof callers,
  job: NewJob = {},
  before?: { readonly startDelay: '1h'; readonly memo?: Record<string, unknown> },
  dataConverter: DataConverter = {},
) {
  const environment = await open();
  const { workflow } = environment.client;
  const { taskQueue } = environment;
  const request = environment.newRequest(job);
  const { projectId, jobId, requestId } = request;
  const options = { taskQueue: QUEUE, workflowId: `${type}-${randomUUID()}` };
  const args: Parameters<typeof callers.waits> = [request, { taskQueue }];
  const workflowId = followUpWorkflowId(projectId, jobId, requestId);
  // By a client whose starts skip no time.
  if (before !== undefined)
    await new Client({ connection, dataConverter }).workflow.start('followUp', {
      ...{ workflowId, taskQueue, ...before },
      args: [request],
    });
  const parent = await workflow.start(type, { ...options, args });
  const followUp = workflow.getHandle(workflowId);
  const messages = () => environment.posts(request).length;
  const sent = () => eventually('the message is sent', () => messages() === 1);
  const endTurn = () => environment.sandbox.changeJob(request, { status: 'completed' });
  return { parent, followUp, messages, sent, endTurn };
}

const causeOf = (result: Promise<unknown>) =>
  result.then(
    () => undefined,
    (error: unknown) => (error instanceof WorkflowFailedError ? error.cause : error),
  );

describe('a workflow of another team', () => {
  it.concurrent('that waits for a follow-up gets its result', async () => {
    const { parent, messages } = await start('waits');
    expect(await parent.result()).toContain('/pull/');
    expect(messages()).toBe(1);
  });

  it.concurrent.each([
    ['returns early', 'startsAndReturns', undefined],
    ['is cancelled', 'waits', expect.any(CancelledFailure)],
    ['is terminated', 'waits', expect.any(TerminatedFailure)],
  ] as const)('that %s leaves the follow-up running to its end', async (how, type, failure) => {
    const { parent, followUp, messages, sent, endTurn } = await start(type, ENDLESS);
    await sent();
    if (how === 'is cancelled') await parent.cancel();
    if (how === 'is terminated') await parent.terminate();
    expect(await causeOf(parent.result())).toEqual(failure);
    endTurn();
    expect(await followUp.result()).toMatchObject({ status: 'completed' });
    expect(messages()).toBe(1);
  });

  it.concurrent('that starts one after its cancellation starts nothing', async () => {
    const { parent, followUp } = await start('startsAfterItsCancellation');
    expect(await causeOf(parent.result())).toBeInstanceOf(CancelledFailure);
    await expect(followUp.describe()).rejects.toThrow(WorkflowNotFoundError);
  });

  it.concurrent('that starts the same follow-up twice attaches to it', async () => {
    const { parent, messages } = await start('startsTwice');
    const { attached, links } = (await parent.result()) as { attached: boolean[]; links: string[] };
    expect(attached).toEqual([false, true]);
    expect(links[0]).toContain('/pull/');
    expect(links[1]).toBe(links[0]);
    expect(messages()).toBe(1);
  });

  it.concurrent('that waits for a follow-up whose start is delayed does not wake it', async () => {
    const { parent, followUp } = await start('waits', undefined, { startDelay: '1h' });
    const looks = async () => (await parent.describe()).raw.pendingActivities?.[0]?.attempt ?? 0;
    await eventually('it has looked, and looks again', looks, { until: (attempt) => attempt > 1 });
    const { events } = await followUp.fetchHistory();
    expect(events?.filter((event) => event.workflowExecutionSignaledEventAttributes)).toEqual([]);
    await Promise.all([parent.terminate(), followUp.terminate()]);
  });

  it.concurrent('hears of the conflict if the existing follow-up carries another prompt', async () => {
    const { parent, followUp, messages } = await start('sendsAnotherPrompt');
    expect(await causeOf(parent.result())).toMatchObject({
      type: 'FollowUpConflict',
      message: requestConflict(followUp.workflowId).message,
      details: [{ job: null, followUp: null }],
    });
    expect(messages()).toBeLessThanOrEqual(1);
  });

  it.concurrent(
    'hears at once that the existing follow-up cannot be read, and does not ask again',
    async () => {
      const { parent } = await start(
        'waits',
        undefined,
        { startDelay: '1h', memo: { note: 'secret' } },
        ENCRYPTING,
      );
      const message = expect.stringMatching(
        /can't be read, another data converter wrote it: Unknown encoding/,
      );
      expect(await causeOf(parent.result())).toMatchObject({ type: 'FollowUpBroken', message });
    },
  );

  it.concurrent('hears of an invalid request with the details of every other end', async () => {
    const { parent } = await start('sendsNothing');
    const details = [{ job: null, followUp: null }];
    expect(await causeOf(parent.result())).toMatchObject({ type: 'InvalidRequest', details });
  });

  it.concurrent.each([
    [
      'FollowUpCancelled',
      { delivery: { verdict: 'accepted' } },
      (handle: { cancel(): Promise<unknown> }) => handle.cancel(),
    ],
    ['FollowUpTerminated', null, (handle: { terminate(): Promise<unknown> }) => handle.terminate()],
  ] as const)('is told of a follow-up that was ended by somebody: %s', async (type, receipt, end) => {
    const { parent, followUp, sent } = await start('waits', ENDLESS);
    await sent();
    await end(followUp);
    const details = [{ job: null, followUp: receipt }];
    expect(await causeOf(parent.result())).toMatchObject({ type, details });
  });
});

it('a workflow of a team calls its own activity at the end of its follow-up, as the example does', async () => {
  const environment = await open();
  const { projectId, jobId, ...request } = { ...environment.newRequest(), requestId: randomUUID() };
  const announced: string[] = [];
  const announce = (text: string) => Promise.resolve(void announced.push(text));
  const taskQueue = `announcing-${randomUUID()}`;
  const own = await Worker.create({
    ...{ connection, taskQueue, activities: { announce } },
    workflowsPath: path.join(__dirname, '../../examples/typescript/workflows.ts'),
    bundlerOptions: {
      webpackConfigHook: (config) => {
        const alias = {
          'agent-follow-up-client/workflow': path.join(__dirname, '../../src/workflows/child.ts'),
        };
        return {
          ...config,
          resolve: { ...config.resolve, alias: Object.assign({}, config.resolve?.alias, alias) },
        };
      },
    },
  });
  const workflowId = `announcing-${randomUUID()}`;
  const args = [{ projectId, jobId, ...request }, environment.taskQueue];
  await own.runUntil(
    environment.client.workflow.execute('followUpAndAnnounce', { taskQueue, workflowId, args }),
  );
  expect(announced).toEqual([expect.stringMatching(`^${jobId}: completed, http://`)]);
});
