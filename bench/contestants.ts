import path from 'node:path';
import type { Client } from '@temporalio/client';
import { FollowUpClient } from '../src/client';
import { DEFAULT_TASK_QUEUES, FOLLOW_UP_WORKFLOW } from '../src/core/names';
import type { FollowUpRequest } from '../src/core/request';
import type { JobKey } from '../sandbox';
import type { Job } from './peers/activities';

/** A way of following a job up: a worker process, and how a caller of it starts one and waits for its end. */
export interface Contestant {
  readonly name: string;
  /** What node runs as the worker process: options, file, arguments. */
  readonly program: readonly string[];
  /** Of its workflow tasks. */
  readonly taskQueue: string;
  /** @returns the workflow id */
  start(client: Client, job: JobKey, polling: FollowUpRequest['polling']): Promise<string>;
  /** Waits for the finished job. */
  result(client: Client, workflowId: string): Promise<Job>;
}

const PROMPT = 'Please fix the broken links on the start page.';

/** Polls by a fixed interval, the shortest that our request takes: the same for all. */
const INTERVAL_MS = 100;
export const FIXED = {
  initial: `${INTERVAL_MS}ms`,
  maximum: `${INTERVAL_MS}ms`,
  growth: 0,
  jitter: 0,
} as const satisfies FollowUpRequest['polling'];

/** Ours: the compiled worker as `npm start` runs it, and callers that use our client. */
export const ours: Contestant = {
  name: FOLLOW_UP_WORKFLOW,
  program: [path.resolve(__dirname, '../dist/worker.js')],
  taskQueue: DEFAULT_TASK_QUEUES.followUp,
  async start(client, job, polling = FIXED) {
    // The textbook loop believes every answer; the sandbox has neither of the delays for which confirm stands.
    const request = { ...job, prompt: PROMPT, requestId: job.jobId, polling, confirm: '0s' } as const;
    const { workflowId } = await new FollowUpClient(client).start(request);
    return workflowId;
  },
  result: (client, workflowId) => new FollowUpClient(client).getHandle(workflowId).result(),
};

/** The loop of bench/peers, against which ours is measured. */
export const textbookLoop: Contestant = {
  name: 'textbookLoop',
  program: ['--import', 'tsx', path.resolve(__dirname, 'peers/worker.ts')],
  taskQueue: 'textbook-loop',
  async start(client, { projectId, jobId }) {
    const taskQueue = 'textbook-loop';
    const workflowId = `${taskQueue}-${projectId}-${jobId}`;
    const args = [{ projectId, jobId }, PROMPT, INTERVAL_MS];
    await client.workflow.start('textbookLoop', { workflowId, taskQueue, args });
    return workflowId;
  },
  result: (client, workflowId) => client.workflow.getHandle(workflowId).result() as Promise<Job>,
};
