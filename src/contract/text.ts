import { truncate } from './bounds';

/**
 * The characters beyond ASCII that a terminal obeys or that reorder the text beside them: C1 controls, line and paragraph
 * separators, direction marks.
 */
const BEYOND_ASCII = '\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';

const UNSAFE = new RegExp(`[\\u0000-\\u001f${BEYOND_ASCII}]`, 'g');
const UNSAFE_IN_JSON = new RegExp(`[${BEYOND_ASCII}]`, 'g');

/**
 * `text` as one well-formed line: each control character and direction mark becomes a space.
 *
 * A text from outside enters a message through this function or {@link quote}. The SDK can't decode a failure message that
 * holds a lone surrogate, and the worker process exits (measured, sdk-core 1.24).
 */
export function singleLine(text: string): string {
  return text.toWellFormed().replace(UNSAFE, ' ');
}

/**
 * The JSON document of a value, safe to show: what {@link singleLine} would replace stands in it as an escape.
 *
 * @param indent spaces per level; 0 for a document on one line
 */
export function safeJson(value: unknown, indent = 0): string {
  const json = JSON.stringify(value, null, indent) as string | undefined;
  return (json ?? 'undefined').replace(
    UNSAFE_IN_JSON,
    (character) => '\\u' + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** A value from outside as JSON for a message, shortened to about `limit` characters. */
export function quote(value: unknown, limit = 60): string {
  return typeof value === 'string' ? safeJson(truncate(value, limit)) : truncate(safeJson(value), limit);
}
