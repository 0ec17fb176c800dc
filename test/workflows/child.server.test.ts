import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { CancelledFailure, TerminatedFailure } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
import { followUpWorkflowId } from '../../src/core/ids';
import { ENCRYPTING, payloadsAreEncrypted } from '../harness/encryption';
import { eventually } from '../harness/eventually';
import { sharedEnvironment } from '../harness/shared-environment';
import { temporal } from '../harness/temporal';
import type * as callers from './callers';

const { open } = sharedEnvironment();
const QUEUE = `callers-${randomUUID()}`;
let connection: NativeConnection;
let worker: Worker;
let running: Promise<void>;

beforeAll(async () => {
  connection = await NativeConnection.connect({ address: temporal().address });
  const workflowsPath = path.join(__dirname, 'callers.ts');
  const converter = payloadsAreEncrypted() ? { dataConverter: ENCRYPTING } : {};
  worker = await Worker.create({ connection, taskQueue: QUEUE, workflowsPath, ...converter });
  running = worker.run();
});

afterAll(async () => {
  worker.shutdown();
  await running;
  await connection.close();
});

/** One of the team's workflows, started with a follow-up to a job of its own. */
async function start(type: keyof typeof callers, turn = 1_500, startDelay?: '3s') {
  const environment = await open();
  const { workflow } = environment.client;
  const { taskQueue } = environment;
  const request = environment.newRequest({ turn: { durationMs: turn } });
  const { projectId, jobId, requestId } = request;
  const options = { taskQueue: QUEUE, workflowId: `${type}-${randomUUID()}` };
  const args: Parameters<typeof callers.waits> = [request, { taskQueue }];
  const workflowId = followUpWorkflowId(projectId, jobId, requestId);
  if (startDelay !== undefined)
    await workflow.start('followUp', { workflowId, taskQueue, args: [request], startDelay });
  const parent = await workflow.start(type, { ...options, args });
  const followUp = workflow.getHandle(workflowId);
  const messages = () => environment.posts(request).length;
  const sent = () => eventually('the message is sent', () => messages() === 1);
  return { parent, followUp, messages, sent };
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
    const { parent, followUp, messages, sent } = await start(type);
    await sent();
    if (how === 'is cancelled') await parent.cancel();
    if (how === 'is terminated') await parent.terminate();
    expect(await causeOf(parent.result())).toEqual(failure);
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
    const { parent, followUp } = await start('waits', 1_500, '3s');
    expect(await parent.result()).toContain('/pull/');
    const { events } = await followUp.fetchHistory();
    expect(events?.filter((event) => event.workflowExecutionSignaledEventAttributes)).toEqual([]);
  });

  it.concurrent('hears of the conflict if the existing follow-up carries another prompt', async () => {
    const { parent, messages } = await start('sendsAnotherPrompt');
    expect(await causeOf(parent.result())).toMatchObject({ type: 'FollowUpConflict' });
    expect(messages()).toBeLessThanOrEqual(1);
  });

  it.concurrent.each([
    ['FollowUpCancelled', (handle: { cancel(): Promise<unknown> }) => handle.cancel()],
    ['FollowUpTerminated', (handle: { terminate(): Promise<unknown> }) => handle.terminate()],
  ] as const)('is told of a follow-up that was ended by somebody: %s', async (type, end) => {
    const { parent, followUp, sent } = await start('waits', 60_000);
    await sent();
    await end(followUp);
    expect(await causeOf(parent.result())).toMatchObject({ type });
  });
});
