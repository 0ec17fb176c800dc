import { z } from 'zod';
import type { JobAnswer, PostOutcome, SendTrouble } from '../core/activities';
import type { AgentJob } from '../core/job';
import { MAX_FIELD_CHARACTERS, MAX_LINK_CHARACTERS, MAX_STATUS_CHARACTERS, plainText } from '../core/text';
import type { Answer, Body, Exchange } from './exchange';
import { bodyTrouble, type Operation, statusTrouble } from './trouble';

export function jobAnswer(exchange: Exchange, jobId: string): JobAnswer {
  if (exchange.kind === 'no answer') return { kind: 'trouble', ...exchange.brokenBy };
  const read = readAnswer(exchange, jobId, 'read');
  if ('job' in read) return { kind: 'job', job: read.job };
  return { kind: 'trouble', ...read.trouble, ...waitOf(exchange) };
}

export function sendOutcome(exchange: Exchange, jobId: string): PostOutcome {
  if (exchange.kind === 'no answer') {
    const { started, brokenBy } = exchange;
    // How far it came can't be seen from here: bytes "written" lie in a buffer. Nor does a code prove anything.
    if (started) return { verdict: 'unknown', ...brokenBy };
    // Time, a new certificate or a restarted service heals whatever else keeps it from connecting.
    const repeatable = !CONFIGURATION_ERROR.test(brokenBy.label);
    return { verdict: 'not-sent', repeatable, answered: false, ...brokenBy };
  }
  const read = readAnswer(exchange, jobId, 'send');
  if ('job' in read) return { verdict: 'accepted', job: read.job };
  const proof = proofOfStatus(exchange.status);
  if (proof !== 'not processed') return { verdict: proof, ...read.trouble };
  return { verdict: 'not-sent', repeatable: true, answered: true, ...waitOf(exchange), ...read.trouble };
}

function readAnswer(
  answer: Answer,
  jobId: string,
  operation: Operation,
): { job: AgentJob } | { trouble: SendTrouble } {
  if (answer.status < 200 || answer.status >= 300) return { trouble: statusTrouble(answer, operation) };
  const job = readJob(answer.body);
  return job?.id === jobId ? { job } : { trouble: bodyTrouble(answer, job?.id) };
}

const text = z
  .string()
  .transform((value) => plainText(value, MAX_FIELD_CHARACTERS))
  .nullable()
  .catch(null);

/** Only an http(s) URL: a `javascript:` one would run in the Web UI. */
const link = z.string().trim().refine(isWebLink).nullable().catch(null);

/** Unknown fields are dropped. The id is kept whole, because it is compared. */
const jobSchema = z.object({
  id: z.string().min(1),
  status: z
    .string()
    .min(1)
    .transform((status) => plainText(status, MAX_STATUS_CHARACTERS)),
  source: z.object({ repository: text, ref: text }).catch({ repository: null, ref: null }),
  model: text,
  prLink: link,
  createdAt: text,
  archivedAt: text,
});

export function readJob(body: Body): AgentJob | undefined {
  return jobSchema.safeParse(body.value).data;
}

function isWebLink(value: string): boolean {
  if (!URL.canParse(value) || value !== plainText(value, MAX_LINK_CHARACTERS)) return false;
  return /^https?:\/\/\S+$/i.test(value);
}

/** A data converter may write an undefined field as null. */
function waitOf(answer: Answer): { retryAfterMs?: number } {
  const retryAfterMs = retryAfter(answer);
  return retryAfterMs === undefined ? {} : { retryAfterMs };
}

export function retryAfter({ headers }: Answer): number | undefined {
  return parseRetryAfter(headers.retryAfter, headers.date);
}

/**
 * The wait that a `Retry-After` header asks for, in milliseconds: a safe integer, 0 where it is negative or past.
 *
 * @param answeredAt the answer's `Date` header, from which a date counts: the worker's clock may be wrong
 */
export function parseRetryAfter(
  header: string | undefined,
  answeredAt: string | undefined,
): number | undefined {
  const value = header?.trim() ?? '';
  const isNumber = /^[-+]?\d+(?:\.\d+)?$/.test(value);
  const waitMs = isNumber ? Number(value) * 1_000 : parseDate(value) - parseDate(answeredAt?.trim() ?? '');
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, Math.ceil(waitMs)), Number.MAX_SAFE_INTEGER);
}

/** An HTTP date (RFC 9110, 5.6.7), or ISO 8601, which some gateways send; else NaN. */
function parseDate(text: string): number {
  const namesZone = /^(?:[A-Z][a-z]{2,8}, .+ GMT|\d{4}-\d{2}-\d{2}T.+(?:Z|[-+]\d{2}:?\d{2}))$/.test(text);
  return namesZone ? Date.parse(text) : NaN;
}

/** Refused for what it is, before the service acts on it: malformed, not allowed, about nothing, or in the wrong state (409). */
const REJECTED: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 409, 410, 413, 415, 422]);

/**
 * What a status proves about a POST, but for a 2xx with the job itself. 429 is the one refusal that is a matter of time. All else
 * is unknown: a 2xx may be a portal's page, a redirect may come after the work, a request may be cut short (408) or held (425) at
 * any point, and a gateway says 502, 503 (with Retry-After too) and 504 after forwarding.
 */
export function proofOfStatus(status: number): 'rejected' | 'not processed' | 'unknown' {
  if (REJECTED.has(status)) return 'rejected';
  return status === 429 ? 'not processed' : 'unknown';
}

export const INVALID_ID = 'invalid id';
export const PROXY_CREDENTIALS = 'PROXY_CREDENTIALS';

/** Every repetition would ask for the same impossible thing: an address, an argument or a header that can't be one. */
const CONFIGURATION_ERROR =
  /^(invalid id|PROXY_CREDENTIALS|UND_ERR_(INVALID_ARG|NOT_SUPPORTED)|ERR_(INVALID_(ARG_\w+|CHAR|URL)|UNESCAPED_CHARACTERS|SOCKET_BAD_PORT))$/;
