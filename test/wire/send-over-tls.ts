import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';

/**
 * A program: sends one message and reads the job from the base URL that it is given, and prints both outcomes. It is
 * a process of its own because Node reads the certificates it trusts (NODE_EXTRA_CA_CERTS) at its start only.
 */
async function main(baseUrl: string): Promise<void> {
  const client = createAgentApi({ baseUrl, apiKey: keyFromText('a-key-of-this-test'), timeoutMs: 5_000 });
  const address = { projectId: 'docs', jobId: 'job-1' };
  const outcome = await client.sendMessage({ ...address, prompt: 'Hello' });
  const read = await client.getJob(address);
  await client.close();
  process.stdout.write(JSON.stringify({ outcome, read }));
}

void main(process.argv[2] ?? '');
