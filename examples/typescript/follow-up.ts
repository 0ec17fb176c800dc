/** Sends one follow-up and prints its pull request: npx tsx follow-up.ts PROJECT JOB REQUEST_ID PROMPT */
import { FollowUpClient, FollowUpError } from 'agent-follow-up-client';

const [projectId = '', jobId = '', requestId = '', prompt = ''] = process.argv.slice(2);
const followUps = await FollowUpClient.connect(); // TEMPORAL_*, or the profile of temporal.toml

try {
  // Starts it, attaches to it while it runs, or finds it after its end: the message is sent once.
  // The sandbox of the demo neither lags nor takes messages up late; for your agent service leave `maxStaleness` out.
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
