import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { keyFromText } from '../../src/agent-api/api-key';
import { createAgentApi, type Proxy } from '../../src/agent-api/client';
import type { SelfSignedCertificate } from './self-signed-certificate';

interface OverTls {
  readonly baseUrl: string;
  readonly proxy?: Proxy;
  /** `beforeFirstByte` gives this reason. */
  readonly heldBackBy?: string;
}

/** Sends one message and reads the job twice. One call at a time. */
export type SendAndRead = (options: OverTls) => Promise<{ outcome: unknown; reads: unknown[] }>;

/** Starts a process that trusts these certificates, and does what is asked of it. */
export function startSender(trusted: readonly SelfSignedCertificate[]): {
  readonly sendAndRead: SendAndRead;
  readonly stop: () => void;
} {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tls-'));
  const authorities = join(folder, 'ca.pem');
  writeFileSync(authorities, trusted.map(({ cert }) => cert).join('\n'));
  const child = spawn(process.execPath, ['--import', 'tsx', __filename], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: authorities },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    sendAndRead: async (options) => {
      child.stdin.write(`${JSON.stringify(options)}\n`);
      const { value } = (await lines.next()) as IteratorResult<string, undefined>;
      if (value === undefined) throw new Error('the sender has ended');
      return JSON.parse(value) as { outcome: unknown; reads: unknown[] };
    },
    stop: () => {
      child.stdin.end();
      rmSync(folder, { recursive: true });
    },
  };
}

/**
 * A program: for each line of its input it sends one message, reads the job twice, and prints the outcomes. It is a process of
 * its own because Node reads the certificates it trusts (NODE_EXTRA_CA_CERTS) at its start only.
 */
async function main(): Promise<void> {
  for await (const line of createInterface(process.stdin)) {
    console.log(JSON.stringify(await sendOnce(JSON.parse(line) as OverTls)));
  }
}

async function sendOnce({ baseUrl, proxy, heldBackBy }: OverTls) {
  const apiKey = keyFromText('a-key-of-this-test');
  const client = createAgentApi({ baseUrl, apiKey, timeoutMs: 60_000, proxy });
  const address = { projectId: 'docs', jobId: 'job-1' };
  const beforeFirstByte = () => heldBackBy;
  const outcome = await client.sendMessage({ ...address, prompt: 'Hello' }, { beforeFirstByte });
  const reads = [await client.getJob(address)];
  // The connection is free again after the answer has been handed over.
  await setImmediate();
  reads.push(await client.getJob(address));
  await client.close();
  return { outcome, reads };
}

if (require.main === module) void main();
