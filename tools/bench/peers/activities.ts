/** Calls the agent service with plain fetch, as in typical sample code. Any status other than 2xx is an error. */
const { AGENT_API_BASE_URL = '', AGENT_API_KEY = '' } = process.env;

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
  if (!response.ok) throw new Error(`the agent service returned ${response.status}`);
  return (await response.json()) as Job;
}

export function sendMessage({ projectId, jobId }: Address, prompt: string): Promise<Job> {
  return call(`${projectId}/job/${jobId}/message`, { method: 'POST', body: JSON.stringify({ prompt }) });
}

export function getJob({ projectId, jobId }: Address): Promise<Job> {
  return call(`${projectId}/job/${jobId}`);
}
