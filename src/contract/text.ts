/* Bounds in characters, applied where a text from outside enters. */
export const MAX_STATUS_CHARACTERS = 64;
/** A longer link is left out, never cut: half a URL is a wrong URL. */
export const MAX_LINK_CHARACTERS = 2_048;
export const MAX_SERVICE_MESSAGE_CHARACTERS = 1_024;
/** Room for many problems of one request. */
export const MAX_FAILURE_CHARACTERS = 8_192;
/** Any other text of a job. */
export const MAX_FIELD_CHARACTERS = 1_024;
/** The column of Temporal's SQL schemas. */
export const MAX_ATTRIBUTE_CHARACTERS = 255;
export const MAX_ID_CHARACTERS = 128;

/* Bounds in bytes of UTF-8. */
export const MAX_PROMPT_BYTES = 256 * 1_024;
export const MAX_WORKFLOW_ID_BYTES = 255;

/** Control characters, separators of lines, and marks that reorder the text beside them. */
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** A field from outside. Unsafe characters become U+FFFD, so that `completed` with a hidden one still differs. */
export function sanitizeField(text: string, limit: number): string {
  return truncate(text.toWellFormed().replace(UNSAFE, '\ufffd'), limit);
}

/** Words from outside on one line. */
export function singleLine(text: string, limit: number): string {
  return truncate(replaceUnsafe(text).replace(/\s+/g, ' ').trim(), limit);
}

/** With an ellipsis where it is cut; a surrogate pair is never split. */
export function truncate(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '') + '…';
}

/** With a space for each unsafe character. Half a pair of surrogates would end the worker process (sdk-core 1.24, measured). */
export function replaceUnsafe(text: string): string {
  return text.toWellFormed().replace(UNSAFE, ' ');
}

/** The JSON of a value, with unsafe characters escaped. */
export function safeJson(value: unknown, indent = 0): string {
  const json = (JSON.stringify(value, null, indent) as string | undefined) ?? 'undefined';
  // A line break comes from the indentation: JSON itself escapes those of a text.
  return json.replace(UNSAFE, (character) =>
    character === '\n' ? character : '\\u' + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** Any value from outside, for a message. */
export function quote(value: unknown, limit = 60): string {
  if (typeof value === 'string') return safeJson(truncate(value, limit));
  // In JSON NaN and Infinity are null.
  if (typeof value === 'number') return String(value);
  try {
    return truncate(safeJson(value), limit);
  } catch {
    // A bigint, or an object that holds itself.
    return `of type ${typeof value}`;
  }
}

/** A text from outside, also in a table's cell. */
export function markdownCode(text: string): string {
  return '`' + text.replace(/[`|\s]+/g, ' ') + '`';
}

/** Words from outside, which end no table's cell, and become no markup or link. */
export function markdownText(text: string): string {
  return text.replace(/[|\s]+/g, ' ').replace(/[\\`*_~[\]<>&#@]|:(?=\/\/)|(?<=www)\./gi, '\\$&');
}

export function markdownCounts(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).map(([name, count]) => `${markdownCode(name)} × ${count}`);
  return words.join(', ') || '-';
}

/** `1 item`, `2 items`. */
export function pluralize(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}

/** Temporal's Web UI gives cells no padding: the colon separates names and values. */
export function markdownTable(rows: readonly (readonly [name: string, value: string])[]): string {
  return ['| | |', '|---|---|', ...rows.map(([name, value]) => `| ${name}: | ${value} |`)].join('\n');
}

export function jsonByteLength(value: unknown): number {
  return utf8ByteLength(JSON.stringify(value));
}

export function utf8ByteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
