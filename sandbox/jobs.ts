import type { AgentJob } from '../src/core/job';
import { type JobChange, JobLife, type JobStart, type LifeRules, type WhileActive } from './job-life';
import type { PullRequests } from './pull-requests';
import type { Random } from './random';
import { type Turn, type TurnPlan, TurnPlans } from './turn';

export interface JobKey {
  readonly projectId: string;
  readonly jobId: string;
}

/** Stands for every project, or for every job, wherever something is aimed at jobs. */
export const ANY = '*';

/** Whether something that is aimed at `target` concerns the job. */
export function covers(target: JobKey, job: JobKey): boolean {
  return (
    (target.projectId === ANY || target.projectId === job.projectId) &&
    (target.jobId === ANY || target.jobId === job.jobId)
  );
}

/** A job to add to the sandbox; every field has a default. */
export interface NewJob {
  /** @default 'docs' */
  readonly projectId?: string;
  /** @default a name that no job of the project has */
  readonly id?: string;
  /** `active` begins with a running turn, which takes the first plan. @default 'completed' */
  readonly status?: JobStart['status'];
  readonly source?: { readonly repository?: string | null; readonly ref?: string | null };
  readonly model?: string | null;
  /** A link from before. @default null */
  readonly prLink?: string | null;
  /** True: the job has a pull request of the sandbox's own from before, instead of `prLink`. @default false */
  readonly pullRequest?: boolean;
  /** ISO 8601 in UTC. @default now */
  readonly createdAt?: string | null;
  /** ISO 8601 in UTC. @default now for an archived job, else null */
  readonly archivedAt?: string | null;
  /** What each turn does, in order; the last plan repeats. @default turns that open a pull request */
  readonly turns?: readonly TurnPlan[];
  /** Short for one plan that repeats. */
  readonly turn?: TurnPlan;
  /** @default the sandbox's `whileActive` */
  readonly whileActive?: WhileActive;
  /** Milliseconds between the end of a turn and the start of a queued message. @default 0 */
  readonly queueGapMs?: number;
}

/** A job from the inside: what the service answers now, and every turn. */
export interface JobReport extends JobKey {
  readonly job: AgentJob;
  readonly turns: readonly Turn[];
  /** How many messages were processed. */
  readonly messages: number;
}

export interface JobsRules extends Pick<
  LifeRules,
  'now' | 'pullRequests' | 'linkWhileActive' | 'whileActive'
> {
  readonly random: Random;
  readonly turnMs: number;
}

/** Thrown for a job that isn't there, or is there already; `status` is what HTTP calls it. */
export class JobError extends Error {
  override readonly name = 'JobError';

  constructor(
    readonly status: 404 | 409,
    message: string,
  ) {
    super(message);
  }
}

/** All jobs of a sandbox, in memory. */
export class Jobs {
  private readonly lives = new Map<string, { readonly key: JobKey; readonly life: JobLife }>();

  constructor(private readonly rules: JobsRules) {}

  /** @throws JobError when the project already has a job of that id. */
  add(job: NewJob): JobReport {
    const projectId = job.projectId ?? 'docs';
    const jobId = job.id ?? this.freeId(projectId);
    if (this.find({ projectId, jobId }) !== undefined) {
      throw new JobError(409, `the project ${projectId} already has a job ${jobId}`);
    }
    const { random, turnMs, ...rules } = this.rules;
    const plans = new TurnPlans(job.turns ?? [job.turn ?? {}], turnMs, random);
    const life = new JobLife(startOf(jobId, job, this.rules.pullRequests, this.rules.now()), {
      ...rules,
      plans,
      whileActive: job.whileActive ?? rules.whileActive,
      queueGapMs: job.queueGapMs ?? 0,
    });
    this.lives.set(mapKey({ projectId, jobId }), { key: { projectId, jobId }, life });
    return this.report({ projectId, jobId });
  }

  find(key: JobKey): JobLife | undefined {
    return this.lives.get(mapKey(key))?.life;
  }

  /** @throws JobError when there is no such job. */
  change(key: JobKey, change: JobChange): JobReport {
    this.existing(key).change(change);
    return this.report(key);
  }

  /** @throws JobError when there is no such job. */
  report(key: JobKey): JobReport {
    const life = this.existing(key);
    const turns = life.turns();
    const messages = turns.filter(({ prompt }) => prompt !== null).length;
    return { projectId: key.projectId, jobId: key.jobId, job: life.job(), turns, messages };
  }

  all(): JobReport[] {
    return [...this.lives.values()].map(({ key }) => this.report(key));
  }

  private existing(key: JobKey): JobLife {
    const life = this.find(key);
    if (life === undefined) throw new JobError(404, `the project ${key.projectId} has no job ${key.jobId}`);
    return life;
  }

  private freeId(projectId: string): string {
    for (let number = this.lives.size + 1; ; number += 1) {
      const jobId = `job-${number}`;
      if (this.find({ projectId, jobId }) === undefined) return jobId;
    }
  }
}

function startOf(id: string, job: NewJob, pullRequests: PullRequests, now: number): JobStart {
  const status = job.status ?? 'completed';
  const time = new Date(now).toISOString();
  const source = { repository: job.source?.repository ?? null, ref: job.source?.ref ?? null };
  if (job.source?.repository === undefined) source.repository = 'example/handbook';
  if (job.source?.ref === undefined) source.ref = 'main';
  const own = (): string =>
    pullRequests.open(source.repository ?? 'unknown/unknown', `agent/${id}`, {
      jobId: id,
      prompt: null,
      at: now,
    });
  return {
    id,
    status,
    source,
    model: job.model === undefined ? 'sandbox-writer-1' : job.model,
    prLink: job.pullRequest === true ? own() : (job.prLink ?? null),
    createdAt: job.createdAt === undefined ? time : job.createdAt,
    archivedAt: job.archivedAt === undefined ? (status === 'archived' ? time : null) : job.archivedAt,
  };
}

/** A project may have any characters in its id, so no separator is safe; JSON is. */
function mapKey({ projectId, jobId }: JobKey): string {
  return JSON.stringify([projectId, jobId]);
}
