/* Limits in characters, which apply as soon as a text from outside enters. */
export const MAX_STATUS_CHARACTERS = 64;
/** A longer link is omitted and never cut, because a part of a URL is a wrong URL. */
export const MAX_LINK_CHARACTERS = 2_048;
export const MAX_SERVICE_MESSAGE_CHARACTERS = 1_024;
/** The maximum length of a failure message, which has room for many problems of one request. */
export const MAX_FAILURE_CHARACTERS = 8_192;
/** The maximum length of any other text of a job. */
export const MAX_FIELD_CHARACTERS = 1_024;
/** The maximum length of a search attribute, which is the length of the column in Temporal's SQL schemas. */
export const MAX_ATTRIBUTE_CHARACTERS = 255;
export const MAX_ID_CHARACTERS = 128;

/* Limits in bytes of UTF-8. */
export const MAX_PROMPT_BYTES = 256 * 1_024;
export const MAX_WORKFLOW_ID_BYTES = 255;

/** Control characters, line and paragraph separators, and marks that change the direction of the text next to them. */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Cleans a field from outside. Unsafe characters become U+FFFD, so that `completed` with a hidden character is not `completed`. */
export function sanitizeField(text: string, limit: number): string {
  return truncate(text.toWellFormed().replace(UNSAFE, '\ufffd'), limit);
}

/** Returns a text from outside as one line without unsafe characters. */
export function singleLine(text: string, limit: number): string {
  return truncate(replaceUnsafe(text).replace(/\s+/g, ' ').trim(), limit);
}

/** Truncates a text and adds an ellipsis. A surrogate pair is never split. */
export function truncate(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '') + '…';
}

/**
 * Replaces each unsafe character with a space. A lone surrogate is replaced too, because it would end the worker process
 * (sdk-core 1.24).
 */
export function replaceUnsafe(text: string): string {
  return text.toWellFormed().replace(UNSAFE, ' ');
}

/** Returns the JSON of a value with escaped unsafe characters. */
export function safeJson(value: unknown, indent = 0): string {
  const json = (JSON.stringify(value, null, indent) as string | undefined) ?? 'undefined';
  // A line break in the JSON comes from the indentation, because JSON escapes line breaks of a text.
  return json.replace(UNSAFE, (character) =>
    character === '\n' ? character : '\\u' + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** Quotes any value from outside for a message. */
export function quote(value: unknown, limit = 60): string {
  if (typeof value === 'string') return safeJson(truncate(value, limit));
  // `JSON.stringify` would return null for NaN and Infinity.
  if (typeof value === 'number') return String(value);
  try {
    return truncate(safeJson(value), limit);
  } catch {
    // `JSON.stringify` fails for a bigint and for an object that contains itself.
    return `of type ${typeof value}`;
  }
}

/** Formats a text from outside as Markdown code, which is also safe in a table cell. */
export function markdownCode(text: string): string {
  return '`' + text.replace(/[`|\s]+/g, ' ') + '`';
}

/** Escapes a text from outside for Markdown. The text can't end a table cell and can't become markup or a link. */
export function markdownText(text: string): string {
  return text.replace(/[|\s]+/g, ' ').replace(/[\\`*_~[\]<>&#@]|:(?=\/\/)|(?<=www)\./gi, '\\$&');
}

export function markdownCounts(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).map(([name, count]) => `${markdownCode(name)} × ${count}`);
  return words.join(', ') || '-';
}

/** Returns a count with its noun, such as `1 item` or `2 items`. */
export function pluralize(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}

/** Returns a Markdown table. A colon separates names from values, because Temporal's Web UI shows cells without padding. */
export function markdownTable(rows: readonly (readonly [name: string, value: string])[]): string {
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name}: | ${value} |`)].join('\n');
}

export function jsonByteLength(value: unknown): number {
  return utf8ByteLength(JSON.stringify(value));
}

export function utf8ByteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
