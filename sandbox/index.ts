import { z } from 'zod';
import { AgentService, type KeyAccess } from './agent-service';
import { ActiveFaults, type FaultSetting } from './active-faults';
import type { JobChange } from './job-life';
import { type JobKey, type JobReport, Jobs, type NewJob } from './jobs';
import { parseWithSchema } from './input';
import { Journal } from './journal';
import { seededRandom } from './random';
import { SandboxServer } from './server';

export type { FaultSetting } from './active-faults';
export type { JobChange, TurnPlan } from './job-life';
export type { JobKey, JobReport, NewJob } from './jobs';
export type { JournalEntry } from './journal';

export interface SandboxOptions {
  /** The port on 127.0.0.1. With 0, the operating system chooses a free port. @default 0 */
  readonly port?: number;
  /** The seed of all random values. @default 1 */
  readonly seed?: number;
  /**
   * The duration of a turn without its own duration, in milliseconds, varied by up to a fifth. With the default, a user can see the
   * status `active`, and a test of some turns is fast.
   *
   * @default 4000
   */
  readonly turnMs?: number;
  /** The rate limit in messages per project and hour, or null for no limit. @default 100, as in the public service */
  readonly messagesPerHour?: number | null;
  /** Whether the sandbox has the fixed jobs {@link SEED_JOBS} at the start. @default true */
  readonly seedJobs?: boolean;
  /** Returns the time of jobs, rate limits and dates in epoch milliseconds. Delays of faults use real time. @default Date.now */
  readonly now?: () => number;
  /** Receives one line per request, which never contains a key. @default nothing is logged */
  readonly log?: (line: string) => void;
}

/** A running sandbox agent service: the address of its HTTP API, and the functions that control it. */
export interface Sandbox {
  /** The value for `AGENT_API_BASE_URL`. */
  readonly baseUrl: string;
  /** A temporary key that may read and write. The key is valid only for this sandbox. */
  readonly apiKey: string;
  readonly journal: Journal;
  /** Adds a job. @throws Error if the project already has a job with this ID */
  addJob(job?: NewJob): JobReport;
  /** Changes a job. @throws Error if the job does not exist */
  changeJob(key: JobKey, change: JobChange): void;
  /** Returns a job. @throws Error if the job does not exist */
  job(key: JobKey): JobReport;
  jobs(): JobReport[];
  /** Switches a fault on. @throws InputError for an unknown fault or an invalid parameter */
  setFault(setting: FaultSetting): void;
  /** Switches off the faults that were set for exactly this target, or all faults. Held requests stay held. */
  clearFaults(target?: JobKey): void;
  /** Releases the requests of one job, or all requests, that the fault `hold` holds. @returns the number of released requests */
  release(target?: JobKey): number;
  /** Creates another key. @default 'write' */
  createKey(access?: KeyAccess): string;
  /** Makes every key expire. */
  expireKeys(): void;
  /** Stops the sandbox and closes all its connections immediately. */
  close(): Promise<void>;
}

/** A job with the effect of a message to it (`story`), for the table that the program prints. */
type SeedJob = NewJob & { readonly projectId: string; readonly id: string; readonly story: string };

/** The jobs at the start. They are of every kind, so that a single command can produce each outcome of a follow-up. */
export const SEED_JOBS: readonly SeedJob[] = (
  [
    { id: 'job-1', story: 'opens its first pull request' },
    { id: 'job-2', pullRequest: true, story: 'adds to its pull request; the link stays the same' },
    { id: 'job-3', status: 'failed', story: 'runs again and opens a pull request' },
    // The running turn is long enough for a user who has just started the sandbox.
    {
      id: 'job-4',
      status: 'active',
      turns: [{ durationMs: 120_000 }, {}],
      story: 'works for two minutes; a message interrupts this turn',
    },
    { id: 'job-5', status: 'archived', pullRequest: true, story: 'rejects messages' },
    { id: 'job-nochange', turn: { outcome: 'no-change' }, story: 'changes no file, so it has no link' },
    { id: 'job-fails', turn: { outcome: 'failed' }, story: 'fails' },
    {
      id: 'job-newlink',
      pullRequest: true,
      turn: { outcome: 'new-pull-request' },
      story: 'opens another pull request, so the link changes',
    },
  ] as const
).map((job) => ({ projectId: 'docs', ...job }));

const HOST = '127.0.0.1';

/** The numeric options. With a value such as NaN, a timer would fire at once and a limit would never apply. */
const numbersSchema = z.object({
  port: z.int().min(0).max(65_535).default(0),
  seed: z.int().default(1),
  turnMs: z.number().min(0).default(4_000),
  messagesPerHour: z.int().min(0).nullable().default(100),
});

/**
 * Starts a sandbox agent service.
 *
 * @throws InputError with the name of an invalid option; Error with a `code` such as `EADDRINUSE` if the sandbox can't listen at the
 * port
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { now = Date.now } = options;
  const { port: wanted, seed, turnMs, messagesPerHour } = parseWithSchema(numbersSchema, options);
  const closing = new AbortController();
  let baseUrl = '';
  const jobs = new Jobs({ now, random: seededRandom(seed), turnMs, origin: () => baseUrl });
  const service = new AgentService(jobs, messagesPerHour, now);
  // The faults have their own random sequence, so that a random fault does not change the durations of the turns.
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
