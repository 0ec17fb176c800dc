import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Client, WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { CancelledFailure, TerminatedFailure } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
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
async function start(type: keyof typeof callers, job: NewJob = {}, isUnreadable = false) {
  const environment = await open();
  const { taskQueue, client } = environment;
  const request = environment.newRequest(job);
  const workflowId = followUpWorkflowId(request.projectId, request.jobId, request.requestId);
  if (isUnreadable) {
    // By a client whose starts skip no time, and whose codec the worker does not have.
    const foreign = new Client({ connection, dataConverter: ENCRYPTING });
    const options = { workflowId, taskQueue: 'nobody', memo: { note: 'secret' }, args: [request] };
    await foreign.workflow.start('followUp', options);
  }
  const args: Parameters<typeof callers.waits> = [request, { taskQueue }];
  const options = { taskQueue: QUEUE, workflowId: `${type}-${randomUUID()}`, args };
  const parent = await client.workflow.start(type, options);
  const followUp = client.workflow.getHandle(workflowId);
  const messages = () => environment.posts(request).length;
  const sent = () => eventually('the message is sent', () => messages() === 1);
  const endTurn = () => environment.sandbox.changeJob(request, { status: 'completed' });
  return { parent, followUp, messages, sent, endTurn };
}

const NOTHING = [{ job: null, followUp: null }];
const UNREADABLE = expect.stringContaining("It can't be read by this data converter: Unknown encoding");

const causeOf = (result: Promise<unknown>) =>
  result.then(
    () => undefined,
    (error: unknown) => (error instanceof WorkflowFailedError ? error.cause : error),
  );

describe('a workflow of another team', () => {
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

  it.concurrent('that starts the same follow-up twice attaches to it', async () => {
    const { parent, messages } = await start('startsTwice');
    const link = expect.stringContaining('/pull/');
    expect(await parent.result()).toEqual({ attached: [false, true], links: [link, link] });
    expect(messages()).toBe(1);
  });

  it.concurrent.each<
    [string, Parameters<typeof start>, object, ((followUp: WorkflowHandle) => Promise<unknown>)?]
  >([
    ['its request is invalid', ['sendsNothing'], { type: 'InvalidRequest', details: NOTHING }],
    ['it carries another prompt', ['sendsAnotherPrompt'], { type: 'FollowUpConflict', details: NOTHING }],
    ['it can’t be read', ['waits', {}, true], { type: 'FollowUpBroken', message: UNREADABLE }],
    [
      'somebody cancels it',
      ['waits', ENDLESS],
      { type: 'FollowUpCancelled', details: [{ followUp: { delivery: { verdict: 'accepted' } } }] },
      (followUp) => followUp.cancel(),
    ],
    [
      'somebody terminates it',
      ['waits', ENDLESS],
      { type: 'FollowUpTerminated', details: NOTHING },
      (followUp) => followUp.terminate(),
    ],
  ])('is told why there is no result of a follow-up when %s', async (_, started, failure, end) => {
    const { parent, followUp, sent, messages } = await start(...started);
    if (end !== undefined) await sent().then(() => end(followUp));
    expect(await causeOf(parent.result())).toMatchObject(failure);
    expect(messages()).toBeLessThanOrEqual(1);
  });
});

it('a workflow of a team calls its own activity at the end of its follow-up, as the example does', async () => {
  const environment = await open();
  const { projectId, jobId, ...request } = { ...environment.newRequest(), requestId: randomUUID() };
  const announced: string[] = [];
  const announce = (text: string) => Promise.resolve(void announced.push(text));
  const alias = { 'agent-follow-up-client/workflow': path.join(__dirname, '../../src/workflows/child.ts') };
  const taskQueue = `announcing-${randomUUID()}`;
  const own = await Worker.create({
    ...{ connection, taskQueue, activities: { announce } },
    workflowsPath: path.join(__dirname, '../../examples/typescript/workflows.ts'),
    bundlerOptions: {
      webpackConfigHook: (config) => ({
        ...config,
        resolve: { ...config.resolve, alias: Object.assign({}, config.resolve?.alias, alias) },
      }),
    },
  });
  const workflowId = `announcing-${randomUUID()}`;
  const args = [{ projectId, jobId, ...request }, environment.taskQueue];
  await own.runUntil(
    environment.client.workflow.execute('followUpAndAnnounce', { taskQueue, workflowId, args }),
  );
  expect(announced).toEqual([expect.stringMatching(`^${jobId}: completed, http://`)]);
});
