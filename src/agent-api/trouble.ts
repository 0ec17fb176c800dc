import { STATUS_CODES } from 'node:http';
import type { SendTrouble } from '../core/activities';
import { isRecord } from '../core/json';
import { MAX_SERVICE_MESSAGE_CHARACTERS, singleLine, truncate } from '../core/text';
import { formatDuration } from '../core/units';
import { describeFacts, type ErrorFact } from './error-facts';
import type { Answer, Body, ExchangeLimits, NoAnswer } from './exchange';

/** Characters of a message for people: it stands in a summary, beside other things. */
const MAX_MESSAGE_CHARACTERS = 400;

/** Characters of anything quoted in such a message. The service's words stand in full in `serviceMessage`. */
const MAX_QUOTE_CHARACTERS = 200;

const CHECK_BASE_URL = 'check AGENT_API_BASE_URL';

/** What a message is made of. */
export interface MessageContext {
  readonly operation: 'read' | 'send';
  /** Host and port of the agent service. */
  readonly host: string;
  readonly limits: ExchangeLimits;
}

/** The trouble of an exchange without an answer. */
export function failureTrouble({ reason }: NoAnswer, { host, limits }: MessageContext): SendTrouble {
  switch (reason.by) {
    case 'timeout':
      return trouble('timeout', `timeout: no answer from ${host} within ${formatDuration(limits.timeoutMs)}`);
    case 'connect timeout': {
      const limit = formatDuration(limits.connectTimeoutMs);
      return trouble('connect timeout', `connect timeout: no connection to ${host} within ${limit}`);
    }
    case 'caller':
      return trouble('held back', reason.why);
    case 'error':
      return errorTrouble(reason.facts);
  }
}

/** The trouble of an error that was thrown or emitted. */
export function errorTrouble(facts: readonly ErrorFact[]): SendTrouble {
  return trouble(facts[0]?.label ?? 'network error', describeFacts(facts));
}

/** The trouble of an answer whose status is not a success. */
export function statusTrouble(answer: Answer, context: MessageContext): SendTrouble {
  const label = `http ${answer.status}`;
  const words = wordsOf(answer);
  const said = words === undefined ? undefined : truncate(words, MAX_QUOTE_CHARACTERS);
  const hint = hintFor(answer, context);
  const phrases = [hint, said].filter((phrase) => phrase !== undefined);
  if (phrases.length === 0) phrases.push(STATUS_CODES[answer.status] ?? 'a status without a meaning');
  return answerTrouble(label, `${label}: ${phrases.join('; ')}`, answer.status, words);
}

/** The trouble of a success whose body is not the job that was asked for. */
export function bodyTrouble(
  answer: Answer,
  otherId: string | undefined,
  context: MessageContext,
): SendTrouble {
  const message = (label: string, what: string) =>
    answerTrouble(label, `http ${answer.status} ${what}`, answer.status, wordsOf(answer));
  if (otherId !== undefined) {
    return message('another job', `with the job ${JSON.stringify(quote(otherId))}, which was not asked for`);
  }
  if (answer.end === 'too large') return message('too large', 'with a body of more than 1 MiB');
  if (answer.end === 'timeout') {
    return message('timeout', `but no complete body within ${formatDuration(context.limits.timeoutMs)}`);
  }
  if (answer.end !== 'complete') {
    const [fact] = answer.end;
    return message(fact?.label ?? 'network error', `but the body broke off (${describeFacts(answer.end)})`);
  }
  if (answer.body.kind === 'html')
    return message('not a job', `with an HTML page instead of a job: ${CHECK_BASE_URL}`);
  return message('not a job', 'with a body that is no job');
}

function hintFor(answer: Answer, { operation }: MessageContext): string | undefined {
  const { status, headers } = answer;
  if (status >= 300 && status < 400) {
    const location = headers.location === undefined ? '' : ` to ${quote(headers.location)}`;
    return `a redirect${location}, which is not followed; ${CHECK_BASE_URL}`;
  }
  if (answer.body.kind === 'html') {
    return `${STATUS_CODES[status] ?? 'an answer'}, with an HTML page; ${CHECK_BASE_URL}`;
  }
  if (status === 401) return 'the key is expired or wrong';
  if (status === 403) {
    return operation === 'send'
      ? 'the key may read but not write, or this address is not allowed'
      : 'the key may not read this project, or this address is not allowed';
  }
  return undefined;
}

/** A body that broke off is not quoted: the break may have cut the key in two. */
function wordsOf({ body, end }: Answer): string | undefined {
  return end === 'complete' ? serviceMessage(body) : undefined;
}

function quote(text: string): string {
  return singleLine(text, MAX_QUOTE_CHARACTERS);
}

function answerTrouble(
  label: string,
  message: string,
  httpStatus: number,
  words: string | undefined,
): SendTrouble {
  return {
    ...trouble(label, message),
    httpStatus,
    ...(words === undefined ? {} : { serviceMessage: words }),
  };
}

/** A trouble with its message on one line and within its bound. */
export function trouble(label: string, message: string): SendTrouble {
  return { label, message: singleLine(message, MAX_MESSAGE_CHARACTERS) };
}

/**
 * The service's own words in the body of an error, on one line and at most 1 KiB: those of `{"error": "…"}`, which the
 * service uses, of the common shapes of gateways before it, or a short plain text. HTML is never quoted.
 *
 * @returns undefined where the body has no words for people
 */
export function serviceMessage(body: Body): string | undefined {
  const words = messageOf(body);
  if (words === undefined) return undefined;
  const line = singleLine(words, MAX_SERVICE_MESSAGE_CHARACTERS);
  return line === '' ? undefined : line;
}

function messageOf(body: Body): string | undefined {
  if (body.kind === 'text') return body.text;
  if (body.kind !== 'json') return undefined;
  const { value } = body;
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return undefined;
  const nested = isRecord(value.error) ? value.error.message : undefined;
  return [value.error, nested, value.message, value.detail].find((words) => typeof words === 'string');
}
