import { MAX_SERVICE_MESSAGE_CHARACTERS, singleLine } from '../contract/bounds';
import { isRecord } from '../contract/field-reader';

/** More of an unstructured text than this is a page or a dump, no message. */
const MAX_PLAIN_TEXT_CHARACTERS = 1_024;

/**
 * The service's own words in the body of an error, on one line and at most 1 KiB: those of `{"error": "…"}`, which the
 * service uses, of the common shapes of gateways before it, or a short plain text. HTML is never quoted.
 *
 * @param redact hides the key; it runs before the words are cut
 * @returns undefined where the body has no words for people
 */
export function serviceMessage(body: string, redact: (text: string) => string): string | undefined {
  if (isHtml(body)) return undefined;
  const words = wordsOf(body);
  if (words === undefined) return undefined;
  const line = singleLine(redact(words), MAX_SERVICE_MESSAGE_CHARACTERS);
  return line === '' ? undefined : line;
}

/** Whether a body is markup: what a portal, a proxy or a wrong address answers with. */
export function isHtml(body: string): boolean {
  return /^\s*<[!?a-z]/i.test(body);
}

function wordsOf(body: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    // No JSON: the text is the message, unless it looks like JSON that was cut off.
    return body.length <= MAX_PLAIN_TEXT_CHARACTERS && !/^\s*[[{"]/.test(body) ? body : undefined;
  }
  if (typeof value === 'string') return value;
  if (!isRecord(value)) return undefined;
  const nested = isRecord(value.error) ? value.error.message : undefined;
  return [value.error, nested, value.message, value.detail].find((words) => typeof words === 'string');
}
