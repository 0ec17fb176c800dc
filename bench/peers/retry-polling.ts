import { proxyActivities } from '@temporalio/workflow';
import type * as activities from './activities';
import type { Address, Job } from './activities';

/** Infrequent polling as Temporal's samples have it: one activity that fails until the job is done, a fixed interval. */
export async function retryPolling(address: Address, prompt: string, intervalMs: number): Promise<Job> {
  const { sendMessage, getFinishedJob } = proxyActivities<typeof activities>({
    startToCloseTimeout: '1 minute',
    retry: { initialInterval: intervalMs, backoffCoefficient: 1 },
  });
  await sendMessage(address, prompt);
  return await getFinishedJob(address);
}
