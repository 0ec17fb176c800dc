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
  /** What its worker process needs in its environment beside the addresses. */
  readonly env?: NodeJS.ProcessEnv;
  /** Of its workflow tasks. */
  readonly taskQueue: string;
  /** @returns the workflow id */
  start(client: Client, job: JobKey, polling: FollowUpRequest['polling']): Promise<string>;
  /** Waits for the finished job. */
  result(client: Client, workflowId: string): Promise<Job>;
}

export const PROMPT = 'Please fix the broken links on the start page.';

/** Polls by a fixed interval, the shortest that our request takes: the same for all. */
const INTERVAL_MS = 100;
export const FIXED = {
  initial: `${INTERVAL_MS}ms`,
  maximum: `${INTERVAL_MS}ms`,
  growth: 0,
  jitter: 0,
} as const satisfies FollowUpRequest['polling'];

/** Ours: the compiled worker as `npm start` runs it, and callers that use our client. */
function followUp(name: string, taskQueue: string, env: NodeJS.ProcessEnv = {}): Contestant {
  return {
    name,
    program: [path.resolve(__dirname, '../dist/worker.js')],
    env,
    taskQueue,
    async start(client, job, polling = FIXED) {
      const request = { ...job, prompt: PROMPT, requestId: job.jobId, polling };
      const { workflowId } = await new FollowUpClient(client, { taskQueue }).start(request);
      return workflowId;
    },
    result: (client, workflowId) => new FollowUpClient(client).getHandle(workflowId).result(),
  };
}

export const ours = followUp(FOLLOW_UP_WORKFLOW, DEFAULT_TASK_QUEUES.followUp);

/** Ours on a worker in whose process no poll may wait: what the server's retries cost instead. */
export const oursByRetries = followUp(`${FOLLOW_UP_WORKFLOW}, by retries`, 'by-retries', {
  AGENT_API_IN_PROCESS_POLLS: '0',
  FOLLOW_UP_TASK_QUEUE: 'by-retries',
  AGENT_API_TASK_QUEUE: 'by-retries-reads',
  AGENT_API_SEND_TASK_QUEUE: 'by-retries-sends',
});

/** One of bench/peers, by the name of its file and of its workflow. */
export function peer(file: string, workflow: string): Contestant {
  return {
    name: workflow,
    program: ['--import', 'tsx', path.resolve(__dirname, 'peers/worker.ts'), file],
    taskQueue: file,
    async start(client, { projectId, jobId }) {
      const workflowId = `${file}-${projectId}-${jobId}`;
      const args = [{ projectId, jobId }, PROMPT, INTERVAL_MS];
      await client.workflow.start(workflow, { workflowId, taskQueue: file, args });
      return workflowId;
    },
    result: (client, workflowId) => client.workflow.getHandle(workflowId).result() as Promise<Job>,
  };
}

export const textbookLoop = peer('textbook-loop', 'textbookLoop');
export const retryPolling = peer('retry-polling', 'retryPolling');
export const bareActivities = peer('bare-activities', 'bareActivities');
/** On the worker of {@link bareActivities}: what a follow-up does before its POST, one thing after the other. */
export const askingActivities = [
  peer('bare-activities', 'askingActivities'),
  peer('bare-activities', 'askingActivitiesWithSettings'),
];
