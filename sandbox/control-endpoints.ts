import type { z } from 'zod';
import {
  check,
  faultSchema,
  jobChangeSchema,
  journalQuerySchema,
  keySchema,
  newJobSchema,
} from './control-schema';
import type { FaultBoard } from './fault-board';
import type { Holds } from './holds';
import type { JobKey, Jobs } from './jobs';
import type { Journal } from './journal';
import type { ApiKeys } from './keys';
import { type Answer, jsonAnswer } from './reaction';

export interface ControlParts {
  readonly jobs: Jobs;
  readonly faults: FaultBoard;
  readonly holds: Holds;
  readonly journal: Journal;
  readonly keys: ApiKeys;
}

export interface Call extends ControlParts {
  /** The project and the job of the path; empty texts where it names none. */
  readonly target: JobKey;
  readonly query: URLSearchParams;
  /** The body, read and checked. */
  readonly body: <T>(schema: z.ZodType<T>) => Promise<T>;
}

export interface Endpoint {
  readonly method: string;
  /** Below `/sandbox`. */
  readonly path: string;
  readonly meaning: string;
  readonly handle: (call: Call) => Answer | Promise<Answer>;
}

const JOB = '/jobs/:projectId/:jobId';

/** Every control endpoint; `GET /sandbox` is made of this table. */
export const ENDPOINTS: readonly Endpoint[] = [
  { method: 'GET', path: '', meaning: 'this list', handle: () => jsonAnswer(200, overview()) },
  {
    method: 'GET',
    path: '/journal',
    meaning:
      'every request in order; filters: projectId, jobId, method, operation, processed, ending, fault; waits for atLeast matches up to waitMs',
    handle: readJournal,
  },
  {
    method: 'GET',
    path: '/jobs',
    meaning: 'all jobs with their turns',
    handle: ({ jobs }) => jsonAnswer(200, { jobs: jobs.all() }),
  },
  {
    method: 'POST',
    path: '/jobs',
    meaning: 'adds a job',
    handle: async ({ jobs, body }) => jsonAnswer(201, jobs.add(await body(newJobSchema))),
  },
  {
    method: 'GET',
    path: JOB,
    meaning: 'one job with its turns',
    handle: ({ jobs, target }) => jsonAnswer(200, jobs.report(target)),
  },
  {
    method: 'PATCH',
    path: JOB,
    meaning: 'changes status, prLink or archivedAt by hand',
    handle: async ({ jobs, target, body }) =>
      jsonAnswer(200, jobs.change(target, await body(jobChangeSchema))),
  },
  {
    method: 'GET',
    path: `${JOB}/faults`,
    meaning: 'the faults that are switched on for a job',
    handle: ({ faults, target }) => jsonAnswer(200, { faults: faults.report(target) }),
  },
  {
    method: 'POST',
    path: `${JOB}/faults`,
    meaning: 'switches a fault on; * stands for every project or job',
    handle: async ({ faults, target, body }) => {
      faults.set({ ...(await body(faultSchema)), ...target });
      return jsonAnswer(201, { faults: faults.report(target) });
    },
  },
  {
    method: 'DELETE',
    path: `${JOB}/faults`,
    meaning: 'switches off what was set for exactly this target; ?name= only that fault',
    handle: ({ faults, target, query }) => {
      faults.clear(target, query.get('name') ?? undefined);
      return jsonAnswer(200, { faults: faults.report(target) });
    },
  },
  {
    method: 'POST',
    path: `${JOB}/release`,
    meaning: 'releases the requests that the fault hold has held; * stands for every project or job',
    handle: ({ holds, target }) => jsonAnswer(200, { released: holds.release(target) }),
  },
  {
    method: 'DELETE',
    path: '/faults',
    meaning: 'switches off every fault',
    handle: ({ faults }) => {
      faults.clear();
      return jsonAnswer(200, { faults: faults.report() });
    },
  },
  {
    method: 'POST',
    path: '/keys',
    meaning: 'makes an API key; {"access": "read-only"} for one that may not write',
    handle: async ({ keys, body }) => jsonAnswer(201, { key: keys.create((await body(keySchema)).access) }),
  },
  {
    method: 'DELETE',
    path: '/keys',
    meaning: 'lets every API key expire',
    handle: ({ keys }) => {
      keys.expire();
      return jsonAnswer(200, {});
    },
  },
];

async function readJournal({ journal, query }: Call): Promise<Answer> {
  const { atLeast, waitMs, ...filter } = check(journalQuerySchema, Object.fromEntries(query));
  return jsonAnswer(200, { entries: await journal.wait(filter, atLeast ?? 0, waitMs ?? 0) });
}

function overview(): unknown {
  return Object.fromEntries(
    ENDPOINTS.map(({ method, path, meaning }) => [`${method} /sandbox${path}`, meaning]),
  );
}
