import { proxyActivities, sleep } from '@temporalio/workflow';
import type * as activities from './activities';
import type { Address, Job } from './activities';

const { sendMessage, getJob } = proxyActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

/** The usual loop with durable timers: sends the message, and then sleeps and reads the job until the job has ended. */
export async function textbookLoop(address: Address, prompt: string, intervalMs: number): Promise<Job> {
  await sendMessage(address, prompt);
  for (;;) {
    await sleep(intervalMs);
    const job = await getJob(address);
    if (['completed', 'archived', 'failed'].includes(job.status)) return job;
  }
}
