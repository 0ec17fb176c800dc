import { proxyActivities } from '@temporalio/workflow';
import type { FollowUpActivities, PollJobInput, PollJobResult } from '../../src/core/activities';

/** The activity of a follow-up's second gear by itself, on the queue of a follow-up worker's reads. */
export async function pollAlone(taskQueue: string, input: PollJobInput): Promise<PollJobResult> {
  const { pollJob } = proxyActivities<Pick<FollowUpActivities, 'pollJob'>>({
    taskQueue,
    startToCloseTimeout: '1 hour',
    heartbeatTimeout: '30 seconds',
    retry: { initialInterval: '1 second', backoffCoefficient: 1, maximumInterval: '1 hour' },
  });
  return await pollJob(input);
}

/** Single reads, one after the other. */
export async function readSingly(taskQueue: string, address: PollJobInput, times: number): Promise<void> {
  const { getJob } = proxyActivities<Pick<FollowUpActivities, 'getJob'>>({
    taskQueue,
    startToCloseTimeout: '1 minute',
  });
  for (let count = 0; count < times; count += 1) await getJob(address);
}
