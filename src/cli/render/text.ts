import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';
import { visible } from '../../core/text';

/** One line without the control sequences of a text from outside, which a terminal would obey. */
export function printable(text: string): string {
  return visible(stripVTControlCharacters(text));
}

export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** By what a reader sees as one character, such as a letter with its accents. */
const characters = new Intl.Segmenter();

/** As much of a line as fits, with an ellipsis. */
export function fitColumns(line: string, columns: number): string {
  if (stringWidth(line) <= columns) return line;
  let fitting = '';
  for (const { segment } of characters.segment(line)) {
    if (stringWidth(fitting + segment) > columns - 1) break;
    fitting += segment;
  }
  return fitting + '…';
}

/** Empty where there are no rows. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : columns([headings, ...rows]);
}

export type Row = readonly [name: string, value: string];

/** Cells in aligned columns, two spaces apart; the last column is not padded. */
export function columns(rows: readonly (readonly string[])[], indent = ''): string {
  const lines = rows.map((row) => row.map(printable));
  const widthOf = (column: number) => Math.max(...lines.map((line) => stringWidth(line[column] ?? '')));
  const widths = lines[0]?.map((_, column) => widthOf(column)) ?? [];
  const padded = (cell: string, column: number) =>
    cell + ' '.repeat((widths[column] ?? 0) - stringWidth(cell));
  return lines.map((line) => indent + line.map(padded).join('  ').trimEnd()).join('\n');
}
