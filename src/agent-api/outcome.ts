import { z } from 'zod';
import type { JobAnswer, PostOutcome, SendTrouble } from '../core/activities';
import type { AgentJob } from '../core/job';
import { MAX_FIELD_CHARACTERS, MAX_LINK_CHARACTERS, MAX_STATUS_CHARACTERS, plainText } from '../core/text';
import type { Answer, Body, Exchange } from './exchange';
import { bodyTrouble, failureTrouble, statusTrouble, type MessageContext } from './trouble';
import { proofOfFailure, proofOfStatus } from './verdict';

/** What one GET of the job brought. */
export function jobAnswer(
  exchange: Exchange,
  jobId: string,
  context: MessageContext,
  nowMs: number,
): JobAnswer {
  if (exchange.kind === 'no answer') return { kind: 'trouble', ...failureTrouble(exchange, context) };
  const read = readAnswer(exchange, jobId, context);
  return 'job' in read
    ? { kind: 'job', job: read.job }
    : { kind: 'trouble', ...read.trouble, ...retryAfter(exchange, nowMs) };
}

/** What one POST of the message proved. */
export function sendOutcome(
  exchange: Exchange,
  jobId: string,
  context: MessageContext,
  nowMs: number,
): PostOutcome {
  if (exchange.kind === 'no answer') {
    const { reason, started } = exchange;
    const facts = reason.by === 'error' ? reason.facts : [];
    const proof = proofOfFailure(started, facts);
    const trouble = failureTrouble(exchange, context);
    return proof.verdict === 'unknown' ? { ...proof, ...trouble } : { ...proof, answered: false, ...trouble };
  }
  const read = readAnswer(exchange, jobId, context);
  if ('job' in read) return { verdict: 'accepted', job: read.job };
  const proof = proofOfStatus(exchange.status);
  if (proof !== 'not processed') return { verdict: proof, ...read.trouble };
  const hint = retryAfter(exchange, nowMs);
  return { verdict: 'not-sent', repeatable: true, answered: true, ...hint, ...read.trouble };
}

/** The job that an answer holds, or what is wrong with it. A broken body doesn't matter where the status or a whole job stands. */
function readAnswer(
  answer: Answer,
  jobId: string,
  context: MessageContext,
): { job: AgentJob } | { trouble: SendTrouble } {
  if (answer.status < 200 || answer.status >= 300) return { trouble: statusTrouble(answer, context) };
  const job = readJob(answer.body);
  return job?.id === jobId ? { job } : { trouble: bodyTrouble(answer, job?.id, context) };
}

function retryAfter(answer: Answer, nowMs: number): { retryAfterMs?: number } {
  const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], nowMs);
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

/** A field that may be absent, null or of another type than the specification says: then it is null. */
const text = z
  .string()
  .nullable()
  .catch(null)
  .transform((value) => (value === null ? null : plainText(value, MAX_FIELD_CHARACTERS)));

/**
 * Anything but an http(s) URL is left out: the link is shown in the Web UI, where a `javascript:` one would run. White space
 * around it is removed: a link that a shell command printed ends with a newline.
 */
const link = z
  .string()
  .trim()
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
 * @returns undefined if the body is not a JSON object with an `id` and a `status`
 */
export function readJob(body: Body): AgentJob | undefined {
  if (body.kind !== 'json') return undefined;
  const { success, data } = jobSchema.safeParse(body.value);
  return success ? { ...data, source: data.source ?? NO_SOURCE } : undefined;
}

function isWebLink(value: string): boolean {
  if (value.length > MAX_LINK_CHARACTERS || !URL.canParse(value)) return false;
  return /^https?:\/\//i.test(value) && value === plainText(value, MAX_LINK_CHARACTERS) && !/\s/.test(value);
}

/** IMF-fixdate, RFC 850 and asctime dates (RFC 9110, 5.6.7), and ISO 8601, which some gateways send. */
const DATE = /^(?:[A-Z][a-z]{2,8},? .*\d{2}:\d{2}:\d{2}.*|\d{4}-\d{2}-\d{2}T.+)$/;

/** The asctime form names no zone and means UTC; `Date.parse` would take the machine's. */
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d{2}:\d{2}:\d{2} \d{4}$/;

/**
 * The wait that a `Retry-After` header asks for, in milliseconds: a safe integer, 0 where it is negative or past, as
 * large as the service says otherwise. The cadence bounds it.
 *
 * @param header the header's value: seconds or a date; of several the first
 * @param nowMs the clock against which a date is read
 * @returns undefined if there is no readable header
 */
export function parseRetryAfter(
  header: string | readonly string[] | undefined,
  nowMs: number,
): number | undefined {
  const value = (typeof header === 'string' ? header : header?.[0])?.trim();
  if (value === undefined) return undefined;
  if (/^[-+]?\d+(?:\.\d+)?$/.test(value)) return bounded(Number(value) * 1_000);
  if (!DATE.test(value)) return undefined;
  const date = Date.parse(ASCTIME.test(value) ? `${value} GMT` : value);
  return Number.isNaN(date) ? undefined : bounded(date - nowMs);
}

function bounded(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), Number.MAX_SAFE_INTEGER);
}
