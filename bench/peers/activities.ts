import { Context } from '@temporalio/activity';

/** The agent service as the authors of the peers would call it: plain fetch, and an error for whatever is no job. */
const { AGENT_API_BASE_URL = '', AGENT_API_KEY = '' } = process.env;

const TERMINAL = ['completed', 'archived', 'failed'];

export interface Address {
  readonly projectId: string;
  readonly jobId: string;
}

export interface Job {
  readonly id: string;
  readonly status: string;
  readonly prLink: string | null;
}

async function call(path: string, options: RequestInit = {}): Promise<Job> {
  const headers = { authorization: `Bearer ${AGENT_API_KEY}`, 'content-type': 'application/json' };
  const response = await fetch(`${AGENT_API_BASE_URL}/v2/agent/${path}`, { ...options, headers });
  if (!response.ok) throw new Error(`the agent service answered ${response.status}`);
  return (await response.json()) as Job;
}

export function sendMessage({ projectId, jobId }: Address, prompt: string): Promise<Job> {
  return call(`${projectId}/job/${jobId}/message`, { method: 'POST', body: JSON.stringify({ prompt }) });
}

/** Read and POST in one activity, as a send that looks before it does. */
export async function readAndSend(address: Address, prompt: string): Promise<Job> {
  await getJob(address);
  return sendMessage(address, prompt);
}

/** … and that asks the server in between whether it may still send. */
export async function readAskAndSend(address: Address, prompt: string): Promise<Job> {
  const job = await getJob(address);
  const { client, info } = Context.current();
  await client.activity.heartbeat(info.taskToken, job);
  return sendMessage(address, prompt);
}

export function settings(): Promise<string> {
  return Promise.resolve(AGENT_API_BASE_URL);
}

export function getJob({ projectId, jobId }: Address): Promise<Job> {
  return call(`${projectId}/job/${jobId}`);
}

/** Fails until the job is done, so that Temporal's retries are the polling. */
export async function getFinishedJob(address: Address): Promise<Job> {
  const job = await getJob(address);
  if (!TERMINAL.includes(job.status)) throw new Error(`the job is ${job.status}`);
  return job;
}
