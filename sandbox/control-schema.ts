import { z } from 'zod';
import { OPERATIONS } from './fault-row';
import type { FaultSetting } from './fault-setting';
import { type JobChange, WHILE_ACTIVE } from './job-life';
import type { NewJob } from './jobs';
import type { JournalFilter } from './journal';
import { KEY_ACCESS } from './keys';
import { OUTCOMES } from './turn';

/** The bodies and queries of the control endpoints. Unknown fields are refused: a misspelt one would do nothing. */

const text = z.string().nullable().exactOptional();
const milliseconds = z.number().min(0);
const id = z.string().min(1);
const status = z.enum(['active', 'completed', 'archived', 'failed']);

const turnPlan = z.strictObject({
  outcome: z.enum(OUTCOMES).exactOptional(),
  durationMs: milliseconds.nullable().exactOptional(),
  reads: z.number().int().min(1).nullable().exactOptional(),
});

export const newJobSchema: z.ZodType<NewJob> = z.strictObject({
  projectId: id.exactOptional(),
  id: id.exactOptional(),
  status: status.exactOptional(),
  source: z.strictObject({ repository: text, ref: text }).exactOptional(),
  model: text,
  prLink: text,
  pullRequest: z.boolean().exactOptional(),
  createdAt: text,
  archivedAt: text,
  turns: z.array(turnPlan).exactOptional(),
  turn: turnPlan.exactOptional(),
  whileActive: z.enum(WHILE_ACTIVE).exactOptional(),
  queueGapMs: milliseconds.exactOptional(),
});

export const jobChangeSchema: z.ZodType<JobChange> = z.strictObject({
  status: status.exactOptional(),
  prLink: text,
  archivedAt: text,
});

export const faultSchema: z.ZodType<Omit<FaultSetting, 'projectId' | 'jobId'>> = z.strictObject({
  name: z.string(),
  times: z.number().exactOptional(),
  skip: z.number().exactOptional(),
  chance: z.number().exactOptional(),
  operation: z.enum(OPERATIONS).exactOptional(),
  parameters: z.record(z.string(), z.union([z.string(), z.number()])).exactOptional(),
});

export const keySchema = z.strictObject({ access: z.enum(KEY_ACCESS).default('write') });

const count = z.coerce.number().int().min(0);

/** The longest wait for the journal in one request: a minute, which every HTTP client waits for an answer. */
export const MAX_WAIT_MS = 60_000;

export const journalQuerySchema = z.strictObject({
  projectId: z.string().exactOptional(),
  jobId: z.string().exactOptional(),
  method: z.string().exactOptional(),
  operation: z.enum(OPERATIONS).exactOptional(),
  processed: z.stringbool({ truthy: ['true'], falsy: ['false'] }).exactOptional(),
  ending: z.enum(['pending', 'answered', 'closed', 'reset', 'caller-gone', 'sandbox-closed']).exactOptional(),
  fault: z.string().exactOptional(),
  atLeast: count.exactOptional(),
  waitMs: count.max(MAX_WAIT_MS).exactOptional(),
}) satisfies z.ZodType<JournalFilter>;

/** Thrown for a control request that is malformed. */
export class ControlError extends Error {}

/** @throws ControlError with all problems in one line, each with the name of its field. */
export function check<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (!result.success) throw new ControlError(problems(result.error));
  return result.data;
}

function problems(error: z.ZodError): string {
  return error.issues
    .map(({ path, message }) => (path.length === 0 ? message : `${path.join('.')}: ${message}`))
    .join('; ');
}
