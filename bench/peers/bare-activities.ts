import { proxyActivities } from '@temporalio/workflow';
import type * as activities from './activities';
import type { Address, Job } from './activities';

const { readAndSend, getJob } = proxyActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

/** The activities of a follow-up whose first poll finds the job done, and nothing around them: read and send, read. */
export async function bareActivities(address: Address, prompt: string): Promise<Job> {
  await readAndSend(address, prompt);
  return await getJob(address);
}
