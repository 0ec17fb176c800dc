import { MAX_WAIT_MS } from './control-schema';
import type { FaultReport } from './fault-board';
import type { FaultSetting } from './fault-setting';
import type { JobChange } from './job-life';
import { ANY, type JobKey, type JobReport, type NewJob } from './jobs';
import { type JournalEntry, type JournalFilter, notEnough, WAIT_DEFAULTS, type WaitOptions } from './journal';
import type { KeyAccess } from './keys';

/**
 * What a {@link Sandbox} offers, over HTTP: for tests against a sandbox that runs as a process of its own.
 *
 * Every method throws an Error with the sandbox's words when it refuses.
 */
export class SandboxControl {
  /** `baseUrl`: where the sandbox listens; a base path is left out by itself. */
  constructor(private readonly baseUrl: string) {}

  addJob(job: NewJob = {}): Promise<JobReport> {
    return this.call('POST', '/jobs', job);
  }

  changeJob(key: JobKey, change: JobChange): Promise<JobReport> {
    return this.call('PATCH', jobPath(key), change);
  }

  job(key: JobKey): Promise<JobReport> {
    return this.call('GET', jobPath(key));
  }

  async jobs(): Promise<JobReport[]> {
    const { jobs } = await this.call<{ jobs: JobReport[] }>('GET', '/jobs');
    return jobs;
  }

  async setFault(setting: FaultSetting): Promise<void> {
    const { projectId = ANY, jobId = ANY, ...rest } = setting;
    await this.call('POST', `${jobPath({ projectId, jobId })}/faults`, rest);
  }

  /** As {@link Sandbox.clearFaults}. */
  async clearFaults(target?: JobKey, name?: string): Promise<void> {
    const query = name === undefined ? '' : `?name=${encodeURIComponent(name)}`;
    await this.call('DELETE', target === undefined ? '/faults' : `${jobPath(target)}/faults${query}`);
  }

  async faults(target: JobKey): Promise<FaultReport[]> {
    const { faults } = await this.call<{ faults: FaultReport[] }>('GET', `${jobPath(target)}/faults`);
    return faults;
  }

  async release(target: JobKey = { projectId: ANY, jobId: ANY }): Promise<number> {
    const { released } = await this.call<{ released: number }>('POST', `${jobPath(target)}/release`);
    return released;
  }

  async createKey(access: KeyAccess = 'write'): Promise<string> {
    const { key } = await this.call<{ key: string }>('POST', '/keys', { access });
    return key;
  }

  async expireKeys(): Promise<void> {
    await this.call('DELETE', '/keys');
  }

  /** The entries that match now. */
  async journal(filter: JournalFilter = {}): Promise<JournalEntry[]> {
    return await this.entries(filter, 0, 0);
  }

  /**
   * Waits until so many entries match.
   *
   * @throws Error when they don't in time; the message says how many there are.
   */
  async waitFor(filter: JournalFilter, options: WaitOptions = {}): Promise<JournalEntry[]> {
    const { atLeast, timeoutMs } = { ...WAIT_DEFAULTS, ...options };
    const deadline = Date.now() + timeoutMs;
    let found: JournalEntry[];
    do {
      const waitMs = Math.min(MAX_WAIT_MS, Math.max(0, deadline - Date.now()));
      found = await this.entries(filter, atLeast, waitMs);
      if (found.length >= atLeast) return found;
    } while (Date.now() < deadline);
    throw new Error(notEnough(filter, atLeast, timeoutMs, found.length));
  }

  private async entries(filter: JournalFilter, atLeast: number, waitMs: number): Promise<JournalEntry[]> {
    const query = new URLSearchParams({ atLeast: String(atLeast), waitMs: String(waitMs) });
    for (const [name, value] of Object.entries(filter)) query.set(name, String(value));
    const { entries } = await this.call<{ entries: JournalEntry[] }>('GET', `/journal?${query.toString()}`);
    return entries;
  }

  private async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { origin } = new URL(this.baseUrl);
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${origin}/sandbox${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...sent,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} /sandbox${path}: ${response.status} ${text.trim()}`);
    return JSON.parse(text) as T;
  }
}

function jobPath({ projectId, jobId }: JobKey): string {
  return `/jobs/${encodeURIComponent(projectId)}/${encodeURIComponent(jobId)}`;
}
