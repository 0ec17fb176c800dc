import path from 'node:path';
import type { Client } from '@temporalio/client';
import { FollowUpClient } from '../../src/entries/client';
import { parseDuration } from '../../src/contract/duration';
import { DEFAULT_TASK_QUEUES, FOLLOW_UP_WORKFLOW } from '../../src/contract/names';
import type { FollowUpRequest } from '../../src/contract/request';
import type { JobKey } from '../../sandbox';
import type { Job } from './peers/activities';

/** A system that the benchmark measures: a worker process, and the calls that start a workflow and wait for its result. */
export interface BenchSubject {
  readonly name: string;
  /** The options, file and arguments with which node runs the worker process. Subjects with the same array share a process. */
  readonly program: readonly string[];
  /** The task queue of the worker's workflow tasks. */
  readonly taskQueue: string;
  /** Starts a workflow. @returns the workflow ID */
  start(client: Client, job: JobKey, polling: FollowUpRequest['polling']): Promise<string>;
  /** Waits for the final job. */
  result(client: Client, workflowId: string): Promise<Job>;
}

const PROMPT = 'Please fix the broken links on the start page.';

/** Every subject polls at this fixed interval, the shortest that a request may have. */
const INTERVAL_MS = 100;
export const FIXED = {
  initial: `${INTERVAL_MS}ms`,
  // Without growth, no interval is longer than the first one.
  growth: 0,
  jitter: 0,
} as const satisfies FollowUpRequest['polling'];

/** The compiled worker as `npm start` runs it, and callers that use `FollowUpClient`. The job lock is not used, because the plain loop has none. */
export const ours: BenchSubject = {
  name: FOLLOW_UP_WORKFLOW,
  program: [path.resolve(__dirname, '../../dist/worker.js')],
  taskQueue: DEFAULT_TASK_QUEUES.followUp,
  start: (client, job, polling = FIXED) => startFollowUp(client, job, { polling, whenActive: 'send' }),
  result: (client, workflowId) => new FollowUpClient(client).getHandle(workflowId).result(),
};

/** The same worker process with the default `whenActive`, which uses the job lock. No other follow-up holds the lock. */
export const oursWithLock: BenchSubject = {
  ...ours,
  name: `${FOLLOW_UP_WORKFLOW} with the job lock`,
  start: (client, job, polling = FIXED) => startFollowUp(client, job, { polling, whenActive: 'wait' }),
};

async function startFollowUp(
  client: Client,
  job: JobKey,
  options: Pick<FollowUpRequest, 'polling' | 'whenActive'>,
): Promise<string> {
  // The plain loop accepts every response, and the sandbox has neither of the delays that maxStaleness covers.
  const request = { ...job, prompt: PROMPT, requestId: job.jobId, maxStaleness: '0s', ...options } as const;
  const { workflowId } = await new FollowUpClient(client).start(request);
  return workflowId;
}

/** The plain loop of tools/bench/peers, which is compared with `ours`. */
export const textbookLoop: BenchSubject = {
  name: 'textbookLoop',
  program: ['--import', 'tsx', path.resolve(__dirname, 'peers/worker.ts')],
  taskQueue: 'textbook-loop',
  async start(client, { projectId, jobId }, polling = FIXED) {
    const taskQueue = 'textbook-loop';
    const workflowId = `${taskQueue}-${projectId}-${jobId}`;
    const interval = parseDuration(polling.initial ?? FIXED.initial);
    if ('problem' in interval) throw new TypeError(interval.problem);
    const args = [{ projectId, jobId }, PROMPT, interval.ms];
    await client.workflow.start('textbookLoop', { workflowId, taskQueue, args });
    return workflowId;
  },
  result: (client, workflowId) => client.workflow.getHandle(workflowId).result() as Promise<Job>,
};
