import { z } from 'zod';
import type { AgentJob } from '../src/contract/job';
import { parseWithSchema, InputError } from './input';
import {
  type JobChange,
  JobLife,
  type JobStart,
  type LifeRules,
  type PastJob,
  type Turn,
  type TurnPlan,
} from './job-life';

export interface JobKey {
  readonly projectId: string;
  readonly jobId: string;
}

/** Stands for every project, or for every job, in the target of a fault or of a release. */
export const ANY = '*';

/** Whether the job is part of the target. */
export function covers(target: JobKey, job: JobKey): boolean {
  return (
    (target.projectId === ANY || target.projectId === job.projectId) &&
    (target.jobId === ANY || target.jobId === job.jobId)
  );
}

/** A job to add to the sandbox. Every field has a default. */
export interface NewJob extends Partial<Pick<LifeRules, 'whileActive'>> {
  /** The ID of the project. @default 'docs' */
  readonly projectId?: string;
  /** The ID of the job. @default an ID that no job of the project has */
  readonly id?: string;
  /** The initial status. With `active`, the job starts with a running turn, which uses the first plan. @default 'completed' */
  readonly status?: JobStart['status'];
  /** The link of an existing pull request. @default null */
  readonly prLink?: string;
  /** Whether the job has an existing pull request of the sandbox, instead of `prLink`. @default false */
  readonly pullRequest?: boolean;
  /** The plans of the turns in order. The last plan repeats. @default turns that open a pull request */
  readonly turns?: readonly TurnPlan[];
  /** A single plan, which repeats. */
  readonly turn?: TurnPlan;
}

const milliseconds = z.int().min(0);
const id = z.string().min(1).max(128);
const turnPlan = z.strictObject({
  outcome: z.enum(['pull-request', 'new-pull-request', 'no-change', 'failed']).exactOptional(),
  durationMs: milliseconds.nullable().exactOptional(),
  reads: z.int().min(1).exactOptional(),
  takeUpMs: milliseconds.exactOptional(),
});
const newJob: z.ZodType<NewJob> = z.strictObject({
  projectId: id.exactOptional(),
  id: id.exactOptional(),
  status: z.enum(['active', 'completed', 'archived', 'failed']).exactOptional(),
  prLink: z.string().exactOptional(),
  pullRequest: z.boolean().exactOptional(),
  turns: z.array(turnPlan).min(1).exactOptional(),
  turn: turnPlan.exactOptional(),
  whileActive: z.enum(['interrupt', 'queue']).exactOptional(),
});

/** A job with its current state, its earlier states, and every turn. */
export interface JobReport extends JobKey {
  readonly job: AgentJob;
  /** The stored states of the job, oldest first. The last one is the current state. */
  readonly changes: readonly PastJob[];
  readonly turns: readonly Turn[];
  /** The number of processed messages. */
  readonly messages: number;
}

export interface JobsRules extends Pick<LifeRules, 'now' | 'random' | 'turnMs'> {
  /** Returns `http://HOST:PORT` for links. A function, because the port is known only after the server listens. */
  readonly origin: () => string;
}

/** All jobs of a sandbox, in memory. */
export class Jobs {
  /** The job that opened each pull request, ordered by the number of the pull request. */
  private readonly pullRequests: JobKey[] = [];
  private readonly lives = new Map<string, { readonly key: JobKey; readonly life: JobLife }>();

  constructor(private readonly rules: JobsRules) {}

  /**
   * Adds the jobs of a request: a list or a single job. Adds all jobs or none.
   *
   * @throws InputError for an invalid job, and for an ID that its project already has
   */
  addFrom(body: unknown): JobReport[] {
    const list = parseWithSchema(z.array(newJob), Array.isArray(body) ? body : [body]);
    const named = list.flatMap(({ projectId = 'docs', id: jobId }) =>
      jobId === undefined ? [] : [{ projectId, jobId }],
    );
    const seen = new Set(this.lives.keys());
    for (const key of named) {
      if (seen.has(mapKey(key)))
        throw new InputError(`the project ${key.projectId} already has a job ${key.jobId}`);
      seen.add(mapKey(key));
    }
    return list.map((job) => this.add(job));
  }

  /** Adds a job. @throws Error if the project already has a job with this ID */
  add(job: NewJob): JobReport {
    const projectId = job.projectId ?? 'docs';
    const key = { projectId, jobId: job.id ?? this.freeId(projectId) };
    if (this.find(key) !== undefined) {
      throw new Error(`the project ${projectId} already has a job ${key.jobId}`);
    }
    const { origin, ...rules } = this.rules;
    const openPullRequest = (): string => `${origin()}/pull/${this.pullRequests.push(key)}`;
    const { status = 'completed', whileActive = 'interrupt' } = job;
    const time = new Date(rules.now()).toISOString();
    const start: JobStart = {
      id: key.jobId,
      status,
      source: { repository: 'example/handbook', ref: 'main' },
      model: 'sandbox-writer-1',
      prLink: job.pullRequest === true ? openPullRequest() : (job.prLink ?? null),
      createdAt: time,
      archivedAt: status === 'archived' ? time : null,
    };
    const plans = job.turns ?? [job.turn ?? {}];
    const life = new JobLife(start, { ...rules, plans, whileActive, openPullRequest });
    this.lives.set(mapKey(key), { key, life });
    return this.report(key);
  }

  find(key: JobKey): JobLife | undefined {
    return this.lives.get(mapKey(key))?.life;
  }

  /** Changes a job. @throws Error if the job does not exist */
  change(key: JobKey, change: JobChange): void {
    this.getLife(key).change(change);
  }

  /** Returns a job. @throws Error if the job does not exist */
  report(key: JobKey): JobReport {
    const life = this.getLife(key);
    const turns = life.turns();
    const messages = turns.filter(({ prompt }) => prompt !== null).length;
    return {
      projectId: key.projectId,
      jobId: key.jobId,
      job: life.job(),
      changes: life.changes(),
      turns,
      messages,
    };
  }

  all(): JobReport[] {
    return [...this.lives.values()].map(({ key }) => this.report(key));
  }

  /** Returns the job that opened the pull request with this number. */
  findOpener(pullRequest: number): JobKey | undefined {
    return this.pullRequests[pullRequest - 1];
  }

  private getLife(key: JobKey): JobLife {
    const life = this.find(key);
    if (life === undefined) throw new Error(`the project ${key.projectId} has no job ${key.jobId}`);
    return life;
  }

  private freeId(projectId: string): string {
    for (let number = this.lives.size + 1; ; number += 1) {
      const jobId = `job-${number}`;
      if (this.find({ projectId, jobId }) === undefined) return jobId;
    }
  }
}

/** Returns the map key of a job. The key is JSON, because an ID may contain any character, so no separator is safe. */
function mapKey({ projectId, jobId }: JobKey): string {
  return JSON.stringify([projectId, jobId]);
}
