import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';
import { safeJson, visible } from '../../core/text';

/**
 * `text` as one line without control sequences. Jobs, links and the service's words come over the wire, and a terminal
 * would obey control sequences in them.
 */
export function printable(text: string): string {
  return visible(stripVTControlCharacters(text));
}

/** As {@link printable}, for text of our own that has several lines. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** The same JSON document, with control characters written as escapes. */
export function printableJson(value: unknown, indent = 2): string {
  return safeJson(value, indent);
}

/** Columns that a line takes on a terminal: two for an East Asian character or an emoji, none for a combining mark. */
export function widthOf(line: string): number {
  return stringWidth(line);
}

/** Splits text into what a reader sees as one character, such as a letter with its accents, or a flag. */
const characters = new Intl.Segmenter();

/** `line`, or as much of it as fits into `columns` of a terminal, with an ellipsis. */
export function fitColumns(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line;
  let fitting = '';
  for (const { segment } of characters.segment(line)) {
    if (widthOf(fitting + segment) > columns - 1) break;
    fitting += segment;
  }
  return fitting + '…';
}

/** `line` with spaces behind it, as wide as `columns`. */
function padColumns(line: string, columns: number): string {
  return line + ' '.repeat(Math.max(0, columns - widthOf(line)));
}

/** Rows under headings, each column as wide as its widest cell. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return aligned([headings, ...rows]);
}

/** Names and values, one below the other. */
export function columns(rows: readonly (readonly [name: string, value: string])[], indent = ''): string {
  return aligned(rows, indent);
}

/** Columns are two spaces apart; the last one is not padded. */
function aligned(rows: readonly (readonly string[])[], indent = ''): string {
  const lines = rows.map((row) => row.map(printable));
  const widths =
    lines[0]?.map((_, index) => Math.max(...lines.map((line) => widthOf(line[index] ?? '')))) ?? [];
  return lines
    .map((line) =>
      line.map((cell, index) => padColumns(cell, index < line.length - 1 ? (widths[index] ?? 0) : 0)),
    )
    .map((cells) => indent + cells.join('  '))
    .join('\n');
}
