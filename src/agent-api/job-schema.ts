import { z } from 'zod';
import {
  MAX_FIELD_CHARACTERS,
  MAX_LINK_CHARACTERS,
  MAX_STATUS_CHARACTERS,
  plainText,
} from '../contract/bounds';
import type { AgentJob } from '../contract/job';

/** A field that may be absent, null or of another type than the specification says: then it is null. */
const text = z
  .string()
  .nullable()
  .catch(null)
  .transform((value) => (value === null ? null : plainText(value, MAX_FIELD_CHARACTERS)));

/** Anything but an http(s) URL is left out: the link is shown in the Web UI, where a `javascript:` one would run. */
const link = z
  .string()
  .nullable()
  .catch(null)
  .transform((value) => (value === null || !isWebLink(value) ? null : value));

const NO_SOURCE = { repository: null, ref: null };

/** Only `id` and `status` are needed; unknown fields are dropped. The id is kept whole, because it is compared. */
const jobSchema = z.object({
  id: z.string().min(1),
  status: z
    .string()
    .min(1)
    .transform((status) => plainText(status, MAX_STATUS_CHARACTERS)),
  source: z.object({ repository: text, ref: text }).nullable().catch(null),
  model: text,
  prLink: link,
  createdAt: text,
  archivedAt: text,
});

/**
 * The job in a body, read as leniently as the service's specification is vague.
 *
 * @param body the text of an answer, also a truncated one: a JSON object that parses is whole, for its last brace is there
 * @returns undefined where the body is no JSON object with an `id` and a `status`
 */
export function readJob(body: string): AgentJob | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const { success, data } = jobSchema.safeParse(value);
  return success ? { ...data, source: data.source ?? NO_SOURCE } : undefined;
}

function isWebLink(value: string): boolean {
  if (value.length > MAX_LINK_CHARACTERS || !URL.canParse(value)) return false;
  return /^https?:\/\//i.test(value) && value === plainText(value, MAX_LINK_CHARACTERS) && !/\s/.test(value);
}
