import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { OverTls } from './send-over-tls';
import type { SelfSignedCertificate } from './self-signed-certificate';

/** Sends one message and reads the job twice in a process that trusts this certificate. */
export async function sendAndRead(
  options: OverTls,
  trusted: SelfSignedCertificate,
): Promise<{ outcome: unknown; reads: unknown[] }> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-tls-'));
  try {
    const authority = join(folder, 'ca.pem');
    await writeFile(authority, trusted.cert);
    const program = join(__dirname, 'send-over-tls.ts');
    const args = ['--import', 'tsx', program, JSON.stringify(options)];
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: authority };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 30_000 });
    return JSON.parse(stdout) as { outcome: unknown; reads: unknown[] };
  } finally {
    await rm(folder, { recursive: true });
  }
}
