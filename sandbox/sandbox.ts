import { AgentService } from './agent-service';
import { FaultBoard, type FaultReport } from './fault-board';
import type { FaultSetting } from './fault-setting';
import { Holds } from './holds';
import type { JobChange, WhileActive } from './job-life';
import { type JobKey, type JobReport, Jobs, type NewJob } from './jobs';
import { Journal } from './journal';
import { type ApiKey, ApiKeys, type KeyAccess } from './keys';
import { PullRequests } from './pull-requests';
import { seededRandom } from './random';
import { RateLimit } from './rate-limit';
import { SEED_JOBS } from './seed';
import { SandboxServer } from './server';

export interface SandboxOptions {
  /** @default 0: a free port */
  readonly port?: number;
  /** @default '127.0.0.1' */
  readonly host?: string;
  /** A prefix of every path of the agent service, such as `/api`. @default '' */
  readonly basePath?: string;
  /** Keys that work; the first one of each access is the sandbox's own. @default one of each, made at random */
  readonly apiKeys?: readonly ApiKey[];
  /** Of everything that is left to chance. @default 1 */
  readonly seed?: number;
  /** How long a turn takes that has no duration of its own, in milliseconds, varied by a fifth. @default 4000 */
  readonly turnMs?: number;
  /** Messages per project and hour; null for no limit. @default 100, as the public service has it */
  readonly messagesPerHour?: number | null;
  /**
   * Whether an `active` job shows the link of an earlier turn. The specification says that it is null then; services
   * of this contract have been seen to show it all the same.
   *
   * @default false
   */
  readonly linkWhileActive?: boolean;
  /** What a message does to the running turn of an `active` job; it is processed either way. @default 'interrupt' */
  readonly whileActive?: WhileActive;
  /** What a message to an `archived` job gets: 400, or a new turn that takes it out of the archive. @default 'refuse' */
  readonly archivedJobs?: 'refuse' | 'accept';
  /** Whether the jobs of {@link SEED_JOBS} are there from the start. @default true */
  readonly seedJobs?: boolean;
  /**
   * Bytes of a request's body.
   *
   * @default 2 MiB: a prompt of 256 KiB fits, even if JSON writes each of its bytes as six
   */
  readonly maxBodyBytes?: number;
  /** The time in epoch milliseconds, for jobs, limits and dates; delays of faults run on real time. @default Date.now */
  readonly now?: () => number;
  /** Gets one line per request; a line never holds a key. @default nothing is logged */
  readonly log?: (line: string) => void;
}

/** A running sandbox agent service: the service itself over HTTP, and what only its owner can do. */
export interface Sandbox {
  /** What `AGENT_API_BASE_URL` is to be. */
  readonly baseUrl: string;
  /** Where the control endpoints are: the same without the base path. */
  readonly controlUrl: string;
  /** A throwaway key that may do everything. */
  readonly apiKey: string;
  /** A throwaway key that may only read. */
  readonly readOnlyApiKey: string;
  readonly journal: Journal;
  /** @throws JobError when the project already has a job of that id. */
  addJob(job?: NewJob): JobReport;
  /** Changes a job by hand. @throws JobError when there is no such job. */
  changeJob(key: JobKey, change: JobChange): JobReport;
  /** @throws JobError when there is no such job. */
  job(key: JobKey): JobReport;
  jobs(): JobReport[];
  /** Switches a fault on. @throws FaultSettingError for an unknown fault or a bad parameter. */
  setFault(setting: FaultSetting): void;
  /** Switches off what was set for exactly this target, or with no target everything. What is held stays held. */
  clearFaults(target?: JobKey, name?: string): void;
  faults(target?: JobKey): FaultReport[];
  /** Releases the requests that the fault `hold` has held, of one job or all; returns how many. */
  release(target?: JobKey): number;
  /** Makes a further key. @default 'write' */
  createKey(access?: KeyAccess): string;
  /** Lets every key expire. */
  expireKeys(): void;
  /** Ends the service and all its connections at once. */
  close(): Promise<void>;
}

/** 4 s: a person sees `active` come and go, and a test of some turns stays quick. */
const DEFAULT_TURN_MS = 4_000;
const DEFAULT_MESSAGES_PER_HOUR = 100;
const DEFAULT_MAX_BODY_BYTES = 2 * 2 ** 20;

/**
 * Starts a sandbox agent service.
 *
 * @throws Error with `code` such as `EADDRINUSE` when it can't listen.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { host = '127.0.0.1', basePath = '', seed = 1, now = Date.now, messagesPerHour } = options;
  let origin = '';
  const closing = new AbortController();
  const keys = new ApiKeys(options.apiKeys ?? []);
  const journal = new Journal();
  const holds = new Holds();
  // Two sequences, so that a fault that is left to chance doesn't change how long the turns are.
  const faults = new FaultBoard(seededRandom(seed + 1));
  const pullRequests = new PullRequests(() => origin + basePath);
  const jobs = new Jobs({
    now,
    pullRequests,
    random: seededRandom(seed),
    turnMs: options.turnMs ?? DEFAULT_TURN_MS,
    linkWhileActive: options.linkWhileActive ?? false,
    whileActive: options.whileActive ?? 'interrupt',
  });
  const limit = messagesPerHour === undefined ? DEFAULT_MESSAGES_PER_HOUR : messagesPerHour;
  const service = new AgentService({
    jobs,
    rateLimit: new RateLimit(limit, now),
    archivedJobs: options.archivedJobs ?? 'refuse',
  });
  const server = new SandboxServer({
    ...{ service, jobs, keys, faults, holds, journal, pullRequests, now, basePath },
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    closing: closing.signal,
    log: options.log ?? (() => undefined),
  });
  const port = await server.listen(options.port ?? 0, host);
  origin = `http://${hostInUrl(host)}:${port}`;
  if (options.seedJobs !== false) for (const job of SEED_JOBS) jobs.add(job);

  const keyFor = (access: KeyAccess): string =>
    options.apiKeys?.find((given) => given.access === access)?.key ?? keys.create(access);

  return {
    baseUrl: origin + basePath,
    controlUrl: origin,
    apiKey: keyFor('write'),
    readOnlyApiKey: keyFor('read-only'),
    journal,
    addJob: (job = {}) => jobs.add(job),
    changeJob: (key, change) => jobs.change(key, change),
    job: (key) => jobs.report(key),
    jobs: () => jobs.all(),
    setFault: (setting) => {
      faults.set(setting);
    },
    clearFaults: (target, name) => {
      faults.clear(target, name);
    },
    faults: (target) => faults.report(target),
    release: (target) => holds.release(target),
    createKey: (access = 'write') => keys.create(access),
    expireKeys: () => {
      keys.expire();
    },
    close: async () => {
      closing.abort(new Error('the sandbox closes'));
      await server.close();
    },
  };
}

/** An address that means "every interface" is reached by the loopback one. */
function hostInUrl(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  const address = host === '::' ? '::1' : host;
  return address.includes(':') ? `[${address}]` : address;
}
