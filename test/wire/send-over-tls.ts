import { setImmediate } from 'node:timers/promises';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import type { Proxy } from '../../src/agent-api/connections';

export interface OverTls {
  readonly baseUrl: string;
  readonly proxy?: Proxy;
  /** `beforeFirstByte` gives this reason. */
  readonly heldBackBy?: string;
}

/**
 * A program: sends one message, reads the job twice, and prints the outcomes. It is a process of its own because Node reads
 * the certificates it trusts (NODE_EXTRA_CA_CERTS) at its start only.
 */
async function main({ baseUrl, proxy, heldBackBy }: OverTls): Promise<void> {
  const apiKey = keyFromText('a-key-of-this-test');
  const client = createAgentApi({ baseUrl, apiKey, timeoutMs: 5_000, proxy });
  const address = { projectId: 'docs', jobId: 'job-1' };
  const beforeFirstByte = () => heldBackBy;
  const outcome = await client.sendMessage({ ...address, prompt: 'Hello' }, { beforeFirstByte });
  const reads = [await client.getJob(address)];
  // The connection is free again after the answer has been handed over.
  await setImmediate();
  reads.push(await client.getJob(address));
  await client.close();
  process.stdout.write(JSON.stringify({ outcome, reads }));
}

if (require.main === module) void main(JSON.parse(process.argv[2] ?? '') as OverTls);
