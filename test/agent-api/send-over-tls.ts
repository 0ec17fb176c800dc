import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi } from '../../src/agent-api/client';
import type { Proxy } from '../../src/agent-api/client';
import type { SelfSignedCertificate } from './self-signed-certificate';

interface OverTls {
  readonly baseUrl: string;
  readonly proxy?: Proxy;
  /** `beforeFirstByte` gives this reason. */
  readonly heldBackBy?: string;
}

/** Sends one message and reads the job twice in a process that trusts this certificate. */
export async function sendAndRead(
  options: OverTls,
  trusted: SelfSignedCertificate,
): Promise<{ outcome: unknown; reads: unknown[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-tls-'));
  try {
    const authority = join(folder, 'ca.pem');
    await writeFile(authority, trusted.cert);
    const args = ['--import', 'tsx', __filename, JSON.stringify(options)];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: authority };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 110_000 });
    return JSON.parse(stdout) as { outcome: unknown; reads: unknown[] };
  } finally {
    await rm(folder, { recursive: true });
  }
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
