import type { AgentJob } from '../src/core/job';
import type { ParameterValues } from './fault-parameters';
import type { AlterContext } from './fault-row';

/** How long a replica lags that nothing else limits: some polls long, and shorter than a person's patience. */
const STALE_MS = 3_000;

/** The state of before the last message, as a replica that lags behind would show it. */
export function stale(job: AgentJob, values: ParameterValues, context: AlterContext): AgentJob {
  const { beforeLastMessage: last, now } = context;
  if (last === undefined) return job;
  const forMs = values.optionalNumber('for') ?? (context.limited ? Infinity : STALE_MS);
  return now - last.at < forMs ? last.before : job;
}

/** Every other good answer about a completed job shows it archived. */
export function flapArchived(job: AgentJob, _values: ParameterValues, context: AlterContext): AgentJob {
  if (job.status !== 'completed') return job;
  const archived = { ...job, status: 'archived', archivedAt: new Date(context.now).toISOString() };
  return context.struck % 2 === 0 ? archived : { ...job };
}

/** No link until some time after the job has completed. */
export function lateLink(job: AgentJob, values: ParameterValues, context: AlterContext): AgentJob {
  const { settledSince, now } = context;
  if (job.prLink === null || settledSince === null) return job;
  return now - settledSince < values.number('for') ? { ...job, prLink: null } : job;
}

/** The link is shown in the first answers that have one, and never again. */
export function vanishingLink(job: AgentJob, values: ParameterValues, context: AlterContext): AgentJob {
  if (job.prLink === null) return job;
  return context.struck < values.number('shown') ? { ...job } : { ...job, prLink: null };
}

/** Another link in every answer that has one; each leads to the same page. */
export function changingLink(job: AgentJob, _values: ParameterValues, context: AlterContext): AgentJob {
  return job.prLink === null ? job : { ...job, prLink: `${job.prLink}?revision=${context.struck + 1}` };
}

export function unknownStatus(job: AgentJob, values: ParameterValues): AgentJob {
  const replaced = values.text('instead-of');
  return replaced === 'any' || replaced === job.status ? { ...job, status: values.text('word') } : job;
}
