import { z } from 'zod';
import type { AgentJob } from '../src/contract/job';
import { parseWithSchema, duration } from './input';
import type { JobLife, TurnPlan } from './job-life';
import type { Random } from './random';
import {
  closeConnection,
  type Encoding,
  ENCODINGS,
  errorResponse,
  type Reaction,
  resetConnection,
  noResponse,
  textResponse,
  truncatedResponse,
} from './reaction';
import {
  STRANGE_FIELDS,
  STRANGE_HEADERS,
  STRANGE_TEXTS,
  strangeJob,
  strangeErrorText,
} from './strange-texts';

/** The two operations of the contract. */
export const OPERATIONS = ['get', 'message'] as const;
export type Operation = (typeof OPERATIONS)[number];

/** The state of a message at the time of its response: its body was not read, or the message is processed (`yes`) or not (`no`). */
type Processed = 'unread' | 'no' | 'yes';

/** The effect of a fault on a request. */
export type Effect =
  /** Replaces the response of the contract. For a read of the job, `processed` has no effect. */
  | { readonly kind: 'instead'; readonly processed: Processed; readonly react: (path: string) => Reaction }
  /** Changes the job in a successful response. If `alter` returns the same object, the fault did not act. */
  | { readonly kind: 'alter'; readonly alter: Alter }
  /** Waits for `ms` milliseconds, or until a release if `ms` is null. A message is processed before the wait, after it, or never. */
  | { readonly kind: 'wait'; readonly processed: 'before' | 'after' | 'never'; readonly ms: number | null }
  /** Compresses a successful response. */
  | { readonly kind: 'encode'; readonly encoding: Encoding }
  /** Replaces parts of the plan of the turn that a message starts. */
  | { readonly kind: 'turn'; readonly plan: (random: Random) => TurnPlan };

type Alter = (job: AgentJob, context: AlterContext) => AgentJob;

interface AlterContext {
  readonly life: JobLife;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly random: Random;
  /** The number of responses that this fault has changed before. */
  readonly alteredCount: number;
}

export interface Fault {
  /** The description of the effect, in one line. */
  readonly help: string;
  /** The operations on which the fault can act. By default, the fault acts on all of them. */
  readonly operations: readonly Operation[];
  readonly parameters: z.ZodObject;
  /** Checks the parameters, and creates the effect. @throws InputError */
  readonly effect: (given: unknown) => Effect;
}

function fault<S extends z.ZodRawShape>(
  help: string,
  shape: S,
  effect: (values: z.output<z.ZodObject<S>>) => Effect,
  operations: readonly Operation[] = OPERATIONS,
): Fault {
  const parameters = z.strictObject(shape);
  return {
    help,
    operations,
    parameters,
    effect: (given) => effect(parseWithSchema(parameters, given, ['parameters'])),
  };
}

/** Creates a fault of messages: the message is processed, and the response does not show it. */
function afterProcessing(help: string, reaction: Reaction): Fault {
  return fault(help, {}, () => instead('yes', () => reaction), ['message']);
}

function instead(processed: Processed, react: (path: string) => Reaction): Effect {
  return { kind: 'instead', processed, react };
}

function alter(change: Alter): Effect {
  return { kind: 'alter', alter: change };
}

function rejectWith(code: number, error: string, retryAfter?: string): Effect {
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return instead('no', () => errorResponse(code, error, headers));
}

const retryAfter = z
  .union([
    z.string().regex(/^[\x20-\x7e]+$/, 'must be printable ASCII, because it is sent in a header'),
    z.number(),
  ])
  .transform(String)
  .describe('the Retry-After header');
const processed = z.enum(['yes', 'no']).describe('whether a message is processed before the response');

const count = z.int().min(1);
const reads = count.optional().describe('the number of reads, instead of a duration');

/** Whether a fault still acts after this number of milliseconds and reads. */
function isLasting(
  values: { readonly for: number; readonly reads?: number | undefined },
  passed: { readonly ms: number; readonly reads: number },
): boolean {
  return values.reads === undefined ? passed.ms < values.for : passed.reads <= values.reads;
}

function code(minimum: number) {
  return z.coerce.number().int().min(minimum).max(599).describe('the status code');
}

const BUSY = 'the service is temporarily unavailable';
const PORTAL = '<!doctype html><title>Sign in</title><h1>Sign in to the guest network</h1>\n';

/** All faults of the sandbox. This table is the source of `--list-faults`, of docs/sandbox.md and of every check. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  'http-503': fault('returns 503, as a gateway does', {}, () => rejectWith(503, BUSY)),
  'http-429': fault('returns 429', { retryAfter: retryAfter.prefault('1') }, (values) =>
    rejectWith(429, 'too many requests', values.retryAfter),
  ),
  status: fault(
    'returns a status code and an error body; words is its error text',
    {
      code: code(200).default(418),
      words: z.string().optional().describe('the error text of the body'),
      retryAfter: retryAfter.optional(),
    },
    (values) =>
      rejectWith(values.code, values.words ?? `the fault returned ${values.code}`, values.retryAfter),
  ),
  html: fault(
    'returns the HTML page of a sign-in portal or a gateway',
    { processed: processed.default('no'), code: code(200).default(200) },
    (values) => {
      const headers = { 'content-type': 'text/html; charset=utf-8' };
      return instead(values.processed, () => textResponse(values.code, PORTAL, headers));
    },
  ),
  redirect: fault('redirects to the same path with 307', {}, () =>
    instead('no', (path) => errorResponse(307, 'moved', { location: path })),
  ),
  unauthorized: fault('returns 401, as if the key had expired', {}, () =>
    rejectWith(401, 'the API key has expired'),
  ),
  'not-found': fault('returns 404, as if the job did not exist', {}, () => rejectWith(404, 'job not found')),
  'close-before-read': fault('closes the connection before the body is read', {}, () =>
    instead('unread', () => closeConnection),
  ),
  'close-after-read': fault('reads the request and closes the connection; nothing is processed', {}, () =>
    instead('no', () => closeConnection),
  ),
  reset: fault('reads the request and resets the connection; nothing is processed', {}, () =>
    instead('no', () => resetConnection),
  ),
  hang: fault('reads the request and never responds; nothing is processed', {}, () =>
    instead('no', () => noResponse),
  ),
  'processed-then-close': afterProcessing('processes the message and closes the connection', closeConnection),
  'processed-then-reset': afterProcessing('processes the message and resets the connection', resetConnection),
  'processed-then-503': fault(
    'processes the message and returns 503',
    { retryAfter: retryAfter.optional() },
    ({ retryAfter: header }) =>
      instead('yes', () => errorResponse(503, BUSY, header === undefined ? {} : { 'retry-after': header })),
    ['message'],
  ),
  'processed-then-timeout': afterProcessing('processes the message and never responds', noResponse),
  truncated: fault(
    'returns 200 and closes the connection in the middle of the body; a message is processed',
    {},
    () => instead('yes', () => truncatedResponse),
  ),
  hold: fault(
    'holds the request until POST /sandbox/release',
    {
      processed: z
        .enum(['before', 'after', 'never'])
        .default('before')
        .describe(
          'when a message is processed; with "after", it is processed even if its caller has disconnected',
        ),
    },
    (values) => ({ kind: 'wait', processed: values.processed, ms: null }),
  ),
  slow: fault(
    'waits before it responds',
    {
      delay: duration.prefault('2s').describe('the duration of the wait'),
      processed: z.enum(['before', 'after']).default('after').describe('when a message is processed'),
    },
    (values) => ({ kind: 'wait', processed: values.processed, ms: values.delay }),
  ),
  stale: fault(
    'returns the job as it was before the last message',
    { for: duration.prefault('3s').describe('the duration after the message'), reads },
    (values) =>
      alter((job, { life, now }) => {
        const last = life.beforeLastMessage;
        if (last === undefined) return job;
        const passed = { ms: now - last.at, reads: life.reads - last.reads };
        return isLasting(values, passed) ? last.job : job;
      }),
  ),
  lag: fault(
    'returns the job as it was some time ago, as a lagging replica does',
    {
      upTo: duration.prefault('3s').describe('each response lags by a time from 0 to this duration'),
      reads: count.optional().describe('each response lags by 0 to this number of reads, instead of a time'),
    },
    ({ upTo, reads }) =>
      alter((job, { life, now, random }) => {
        const behind = Math.round((reads ?? upTo) * random());
        return (reads === undefined ? life.jobAt(now - behind) : life.jobAtRead(behind)) ?? job;
      }),
    ['get'],
  ),
  'late-link': fault(
    'returns a null prLink for some time after the job has completed',
    { for: duration.prefault('3s').describe('the duration after the job has completed'), reads },
    (values) =>
      alter((job, { life, now }) => {
        const since = life.terminalSince();
        if (job.prLink === null || since === null) return job;
        const passed = { ms: now - since, reads: life.readsSinceTerminal() };
        return isLasting(values, passed) ? { ...job, prLink: null } : job;
      }),
  ),
  'unknown-status': fault(
    'returns an unknown status instead of active',
    { word: z.string().min(1).default('hibernating').describe('the status') },
    ({ word }) => alter((job) => (job.status === 'active' ? { ...job, status: word } : job)),
  ),
  'another-job': fault('returns a job with another ID', {}, () =>
    alter((job) => ({ ...job, id: `${job.id}-other` })),
  ),
  compressed: fault(
    'compresses the response, although the request allows no encoding',
    { encoding: z.enum(ENCODINGS).default('gzip').describe('the encoding') },
    ({ encoding }) => ({ kind: 'encode', encoding }),
  ),
  'invisible-turn': fault(
    'ends the turn of a message at once, so that no read returns active',
    {},
    () => ({ kind: 'turn', plan: () => ({ durationMs: 0 }) }),
    ['message'],
  ),
  'late-take-up': fault(
    'accepts a message, and starts its turn later; until then, the job continues as before',
    { upTo: duration.prefault('3s').describe('the turn starts after a time from 0 to this duration') },
    ({ upTo }) => ({ kind: 'turn', plan: (random) => ({ takeUpMs: Math.round(upTo * random()) }) }),
    ['message'],
  ),
  'strange-job': fault(
    'returns a job with lone surrogates, control characters, a huge text, or a number or an object instead of a text in a field',
    {
      text: z
        .enum(['each', ...STRANGE_TEXTS])
        .default('each')
        .describe('the text that is sent'),
      field: z
        .enum(['each', ...STRANGE_FIELDS])
        .default('each')
        .describe('the field that has the text'),
    },
    ({ text, field }) => alter((job, { alteredCount }) => strangeJob(job, text, field, alteredCount)),
  ),
  'strange-error': fault(
    'returns an error whose error text and headers are strange texts',
    {
      text: z.enum(STRANGE_TEXTS).default('surrogate').describe('the error text'),
      code: code(300).default(503),
      processed: processed.default('no'),
    },
    (values) =>
      instead(values.processed, () =>
        errorResponse(values.code, strangeErrorText(values.text), STRANGE_HEADERS),
      ),
  ),
};
