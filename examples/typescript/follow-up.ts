/** Sends one follow-up and prints its pull request: npx tsx follow-up.ts PROJECT JOB REQUEST_ID PROMPT */
import { FollowUpClient, FollowUpError } from 'agent-follow-up-client';

const [projectId = '', jobId = '', requestId = '', prompt = ''] = process.argv.slice(2);
const followUps = await FollowUpClient.connect(); // uses TEMPORAL_* or the profile of temporal.toml

try {
  // The call starts the follow-up, attaches to a running one, or finds one that has ended. In the last two cases, the message is not
  // sent again.
  // The demo's sandbox has no stale responses. For your agent service, remove `maxStaleness`.
  const handle = await followUps.start({ projectId, jobId, requestId, prompt, maxStaleness: '2s' });
  const job = await handle.result();
  console.log(job.status, job.prLink);
} catch (error) {
  if (!(error instanceof FollowUpError)) throw error;
  const delivery = error.receipt === null ? '' : `, delivery ${error.receipt.delivery.verdict}`;
  console.error(`${error.code}${delivery}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await followUps.close();
}
