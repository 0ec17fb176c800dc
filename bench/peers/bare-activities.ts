import { proxyActivities } from '@temporalio/workflow';
import type * as activities from './activities';
import type { Address, Job } from './activities';

const { sendMessage, getJob } = proxyActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

/** The activities of a follow-up whose first poll finds the job done, and nothing around them: read, send, read. */
export async function bareActivities(address: Address, prompt: string): Promise<Job> {
  await getJob(address);
  await sendMessage(address, prompt);
  return await getJob(address);
}
