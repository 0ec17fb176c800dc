import { truncate, UNSAFE } from './bounds';

/** `text`, well-formed, with a space for each character that a terminal obeys or that reorders the text beside it. */
export function visible(text: string): string {
  return text.toWellFormed().replace(UNSAFE, ' ');
}

/**
 * The JSON document of a value, safe to show: what {@link visible} would replace stands in it as an escape.
 *
 * @param indent spaces per level; 0 for a document on one line
 */
export function safeJson(value: unknown, indent = 0): string {
  const json = (JSON.stringify(value, null, indent) as string | undefined) ?? 'undefined';
  // JSON itself escapes those of ASCII; a line break that is left comes from the indentation.
  return json.replace(UNSAFE, (character) =>
    character === '\n' ? character : '\\u' + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/**
 * A value from outside as JSON for a message, shortened to about `limit` characters. It is well-formed and has no control
 * characters, as every failure message of a workflow must be: see `singleLine`.
 */
export function quote(value: unknown, limit = 60): string {
  return typeof value === 'string' ? safeJson(truncate(value, limit)) : truncate(safeJson(value), limit);
}
