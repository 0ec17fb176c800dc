import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { CancelledFailure, TerminatedFailure } from '@temporalio/common';
import { NativeConnection, Worker } from '@temporalio/worker';
import { followUpWorkflowId } from '../../src/contract/ids';
import { createAgentApi, FollowUpPlugin, keyFromText } from '../../src/entries/plugin';
import { eventually } from '../../tools/lib/eventually';
import { ENDLESS_TURN } from '../harness/follow-up-under-test';
import { sharedEnvironment } from '../harness/shared-environment';
import { temporal } from '../harness/temporal';
import type { NewJob } from '../../sandbox';
import type * as callers from './callers';

/** Child workflows use the clock of their parent. */
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

/** Starts a workflow of the team with a request for a follow-up to a new job. */
async function start(type: keyof typeof callers, job: NewJob = {}) {
  const environment = await open();
  const { taskQueue, client } = environment;
  const request = environment.newRequest(job);
  const workflowId = followUpWorkflowId(request.projectId, request.jobId, request.requestId);
  const args: Parameters<typeof callers.waits> = [request, { taskQueue }];
  const options = { taskQueue: QUEUE, workflowId: `${type}-${randomUUID()}`, args };
  const parent = await client.workflow.start(type, options);
  const followUp = client.workflow.getHandle(workflowId);
  const messages = () => environment.posts(request).length;
  const sent = () => eventually('the message is sent', () => messages() === 1);
  const endTurn = () => environment.sandbox.changeJob(request, { status: 'completed' });
  return { parent, followUp, messages, sent, endTurn };
}

const NOTHING = [{ job: null, receipt: null }];
const ACCEPTED = [{ receipt: { delivery: { verdict: 'accepted' } } }];

const causeOf = (result: Promise<unknown>) =>
  result.then(
    () => undefined,
    (error: unknown) => (error instanceof WorkflowFailedError ? error.cause : error),
  );

describe('a parent workflow of another team', () => {
  it.concurrent.each([
    ['returns early', 'startsAndReturns', undefined],
    ['is cancelled', 'waits', expect.any(CancelledFailure)],
    ['is terminated', 'waits', expect.any(TerminatedFailure)],
  ] as const)('that %s does not stop its follow-up', async (event, type, failure) => {
    const { parent, followUp, messages, sent, endTurn } = await start(type, ENDLESS_TURN);
    await sent();
    if (event === 'is cancelled') await parent.cancel();
    if (event === 'is terminated') await parent.terminate();
    expect(await causeOf(parent.result())).toEqual(failure);
    endTurn();
    expect(await followUp.result()).toMatchObject({ status: 'completed' });
    expect(messages()).toBe(1);
  });

  it.concurrent(
    'that starts the same follow-up twice attaches to it, and the message is sent once',
    async () => {
      const { parent, messages } = await start('startsTwice');
      const link = expect.stringContaining('/pull/');
      expect(await parent.result()).toEqual({ attached: [false, true], links: [link, link] });
      expect(messages()).toBe(1);
    },
  );

  it.concurrent.each([
    ['the request is invalid', 'sendsNothing', null, { type: 'InvalidRequest', details: NOTHING }],
    [
      'the request ID already has another prompt',
      'sendsAnotherPrompt',
      null,
      { type: 'FollowUpConflict', details: NOTHING },
    ],
    ['a client cancels the follow-up', 'waits', 'cancel', { type: 'FollowUpCancelled', details: ACCEPTED }],
    [
      'a client terminates the follow-up',
      'waits',
      'terminate',
      { type: 'FollowUpTerminated', details: NOTHING },
    ],
  ] as const)(
    'receives a typed failure with the job and the receipt if %s',
    async (_, type, action, failure) => {
      const { parent, followUp, sent, messages } = await start(type, action === null ? {} : ENDLESS_TURN);
      if (action !== null) await sent().then(() => followUp[action]());
      expect(await causeOf(parent.result())).toMatchObject(failure);
      expect(messages()).toBeLessThanOrEqual(1);
    },
  );
});

describe('a workflow that starts a follow-up without a task queue', () => {
  const executeWaits = async (taskQueue: string) => {
    const environment = await open();
    const request = environment.newRequest();
    const followUpId = followUpWorkflowId(request.projectId, request.jobId, request.requestId);
    const parent = { taskQueue, workflowId: `waits-${randomUUID()}`, args: [request] };
    const result = environment.client.workflow.execute('waits', parent);
    return { result, followUp: environment.client.workflow.getHandle(followUpId) };
  };

  it('runs it on its own task queue if its worker has the plugin', async () => {
    const { sandbox } = await open();
    const taskQueue = `team-${randomUUID()}`;
    const apiKey = keyFromText(sandbox.apiKey);
    const agentApi = createAgentApi({ baseUrl: sandbox.baseUrl, apiKey, timeoutMs: 2_000 });
    const teamWorker = await Worker.create({
      ...{ connection, taskQueue, workflowsPath: path.join(__dirname, 'callers.ts') },
      plugins: [new FollowUpPlugin({ agentApi })],
    });
    await teamWorker.runUntil(async () => {
      const { result, followUp } = await executeWaits(taskQueue);
      expect(await result).toContain('/pull/');
      expect(await followUp.describe()).toMatchObject({ type: 'followUp', taskQueue });
    });
    await agentApi.close();
  });

  it('fails and starts nothing if its worker does not have the plugin', async () => {
    const { result, followUp } = await executeWaits(QUEUE);
    expect(await causeOf(result)).toMatchObject({
      ...{ type: 'InvalidRequest', details: NOTHING },
      message: expect.stringContaining(
        "taskQueue: is missing; set it to the task queue of the follow-ups' worker",
      ),
    });
    await expect(followUp.describe()).rejects.toThrow(WorkflowNotFoundError);
  });
});

it('the example workflow in examples/typescript calls an activity of its team after the end of its follow-up', async () => {
  const environment = await open();
  const request = environment.newRequest();
  const taskQueue = `announcing-${randomUUID()}`;
  const announced: string[] = [];
  const alias = { 'agent-follow-up-client/workflow': path.join(__dirname, '../../src/entries/workflow.ts') };
  const teamWorker = await Worker.create({
    ...{ connection, taskQueue },
    activities: { announce: (text: string) => Promise.resolve(void announced.push(text)) },
    workflowsPath: path.join(__dirname, '../../examples/typescript/workflows.ts'),
    bundlerOptions: {
      webpackConfigHook: ({ resolve, ...config }) => ({
        ...config,
        resolve: { ...resolve, alias: Object.assign({}, resolve?.alias, alias) },
      }),
    },
  });
  const options = { taskQueue, workflowId: taskQueue, args: [request, environment.taskQueue] };
  await teamWorker.runUntil(environment.client.workflow.execute('followUpAndAnnounce', options));
  expect(announced).toEqual([expect.stringMatching(`^${request.jobId}: completed, http://`)]);
});
