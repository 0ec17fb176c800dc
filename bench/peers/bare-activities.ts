import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type * as activities from './activities';
import type { Address, Job } from './activities';

const { readAndSend, readAskAndSend, getJob } = proxyActivities<typeof activities>({
  startToCloseTimeout: '1 minute',
});
const { settings } = proxyLocalActivities<typeof activities>({ startToCloseTimeout: '1 minute' });

/** The activities of a follow-up whose first poll finds the job done, and nothing around them: read and send, read. */
export async function bareActivities(address: Address, prompt: string): Promise<Job> {
  await readAndSend(address, prompt);
  return await getJob(address);
}

/** The same, and the heartbeat between read and POST by which a follow-up asks the server for its permission. */
export async function askingActivities(address: Address, prompt: string): Promise<Job> {
  await readAskAndSend(address, prompt);
  return await getJob(address);
}

/** The same, and the local activity before it that tells a follow-up its worker's settings. */
export async function askingActivitiesWithSettings(address: Address, prompt: string): Promise<Job> {
  await settings();
  return askingActivities(address, prompt);
}
