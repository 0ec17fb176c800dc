import { AgentService, type KeyAccess } from './agent-service';
import { ActiveFaults, type FaultSetting } from './active-faults';
import type { JobChange } from './job-life';
import { type JobKey, type JobReport, Jobs, type NewJob } from './jobs';
import { Journal } from './journal';
import { seededRandom } from './random';
import { SandboxServer } from './server';

export type { FaultSetting } from './active-faults';
export type { JobChange, TurnPlan } from './job-life';
export type { JobKey, JobReport, NewJob } from './jobs';
export type { JournalEntry } from './journal';

export interface SandboxOptions {
  /** On 127.0.0.1. @default 0: a free port */
  readonly port?: number;
  /** Of everything that is left to chance. @default 1 */
  readonly seed?: number;
  /**
   * How long a turn takes that has no duration of its own, in milliseconds, varied by a fifth.
   *
   * @default 4000: a person sees `active` come and go, and a test of some turns stays quick
   */
  readonly turnMs?: number;
  /** Messages per project and hour; null for no limit. @default 100, as the public service has it */
  readonly messagesPerHour?: number | null;
  /** Whether the jobs of {@link SEED_JOBS} are there from the start. @default true */
  readonly seedJobs?: boolean;
  /** The time in epoch milliseconds, for jobs, limits and dates; delays of faults run on real time. @default Date.now */
  readonly now?: () => number;
  /** Gets one line per request; a line never holds a key. @default nothing is logged */
  readonly log?: (line: string) => void;
}

/** A running sandbox agent service: the service itself over HTTP, and what only its owner can do. */
export interface Sandbox {
  /** What `AGENT_API_BASE_URL` is to be. */
  readonly baseUrl: string;
  /** A throwaway key that may do everything. */
  readonly apiKey: string;
  readonly journal: Journal;
  /** @throws Error when the project already has a job of that id */
  addJob(job?: NewJob): JobReport;
  /** Changes a job by hand. @throws Error when there is no such job */
  changeJob(key: JobKey, change: JobChange): void;
  /** @throws Error when there is no such job */
  job(key: JobKey): JobReport;
  jobs(): JobReport[];
  /** Switches a fault on. @throws InputError for an unknown fault or a bad parameter */
  setFault(setting: FaultSetting): void;
  /** Switches off what was set for exactly this target, or everything. What is held stays held. */
  clearFaults(target?: JobKey): void;
  /** Releases the requests that the fault `hold` has held, of one job or all; returns how many. */
  release(target?: JobKey): number;
  /** Makes a further key. @default 'write' */
  createKey(access?: KeyAccess): string;
  /** Lets every key expire. */
  expireKeys(): void;
  /** Ends the service and all its connections at once. */
  close(): Promise<void>;
}

/** A job with what a message to it leads to, for the table that the program prints. */
type SeedJob = NewJob & { readonly projectId: string; readonly id: string; readonly story: string };

/** One job of every kind, so that each way in which a follow-up can end is one command away. */
export const SEED_JOBS: readonly SeedJob[] = (
  [
    { id: 'job-1', story: 'opens its first pull request' },
    { id: 'job-2', pullRequest: true, story: 'adds to its pull request; the link stays the same' },
    { id: 'job-3', status: 'failed', story: 'comes back to life and opens a pull request' },
    // The running turn lasts long enough to be met by a person who has just started the sandbox.
    {
      id: 'job-4',
      status: 'active',
      turns: [{ durationMs: 120_000 }, {}],
      story: 'works for two minutes; a message interrupts that',
    },
    { id: 'job-5', status: 'archived', pullRequest: true, story: 'refuses messages' },
    { id: 'job-nochange', turn: { outcome: 'no-change' }, story: 'changes nothing: no link' },
    { id: 'job-fails', turn: { outcome: 'failed' }, story: 'fails' },
    {
      id: 'job-newlink',
      pullRequest: true,
      turn: { outcome: 'new-pull-request' },
      story: 'opens another pull request: the link changes',
    },
  ] as const
).map((job) => ({ projectId: 'docs', ...job }));

const HOST = '127.0.0.1';

/**
 * Starts a sandbox agent service.
 *
 * @throws Error with `code` such as `EADDRINUSE` when it can't listen
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { port: wanted = 0, seed = 1, turnMs = 4_000, messagesPerHour = 100, now = Date.now } = options;
  const closing = new AbortController();
  let baseUrl = '';
  const jobs = new Jobs({ now, random: seededRandom(seed), turnMs, origin: () => baseUrl });
  const service = new AgentService(jobs, messagesPerHour, now);
  // Two sequences, so that a fault that is left to chance doesn't change how long the turns are.
  const faults = new ActiveFaults(seededRandom(seed + 1));
  const journal = new Journal();
  const parts = { service, jobs, faults, journal, now, closing: closing.signal };
  const server = new SandboxServer(parts, options.log ?? (() => undefined));
  baseUrl = `http://${HOST}:${await server.listen(wanted, HOST)}`;
  if (options.seedJobs !== false) for (const job of SEED_JOBS) jobs.add(job);

  return {
    baseUrl,
    apiKey: service.createKey('write'),
    journal,
    addJob: (job = {}) => jobs.add(job),
    changeJob: (key, change) => {
      jobs.change(key, change);
    },
    job: (key) => jobs.report(key),
    jobs: () => jobs.all(),
    setFault: (setting) => {
      faults.set(setting);
    },
    clearFaults: (target) => {
      faults.clear(target);
    },
    release: (target) => faults.release(target),
    createKey: (access = 'write') => service.createKey(access),
    expireKeys: () => {
      service.expireKeys();
    },
    close: async () => {
      closing.abort(new Error('the sandbox closes'));
      await server.close();
    },
  };
}
