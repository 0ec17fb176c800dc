import { stripVTControlCharacters } from 'node:util';

/**
 * Everything but visible text: control characters, line and paragraph separators, and the marks that reorder what
 * stands beside them. Jobs, links and the service's words come over the wire, and a terminal obeys what it is sent.
 */
// eslint-disable-next-line no-control-regex -- control characters are what it is about
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** `text` as one line that a terminal only shows. */
export function printable(text: string): string {
  return stripVTControlCharacters(text).replace(UNPRINTABLE, ' ').toWellFormed();
}

/** As {@link printable}, for text of our own that has several lines. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/**
 * The same JSON document, with what a terminal would obey written as escapes.
 *
 * @param indent blanks a level; 0 for a document of one line
 */
export function printableJson(value: unknown, indent = 2): string {
  return JSON.stringify(value, null, indent).replace(
    /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (character) => '\\u' + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** Columns that a terminal needs for one character: two for those of East Asia and for emoji. */
function columnsOf(character: string): number {
  if (/\p{Mark}/u.test(character)) return 0;
  return /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u.test(
    character,
  )
    ? 2
    : 1;
}

/** Columns that a terminal needs for a line. */
export function widthOf(text: string): number {
  return Array.from(text).reduce((sum, character) => sum + columnsOf(character), 0);
}

/** `text`, or as much of it as fits into `columns` of a terminal, with an ellipsis. */
export function fitColumns(text: string, columns: number): string {
  let used = 0;
  let fitting = '';
  for (const character of text) {
    used += columnsOf(character);
    if (used > columns) return cutForEllipsis(fitting, columns);
    fitting += character;
  }
  return text;
}

function cutForEllipsis(text: string, columns: number): string {
  const characters = Array.from(text);
  while (characters.length > 0 && widthOf(characters.join('')) > columns - 1) characters.pop();
  return characters.join('') + '…';
}
