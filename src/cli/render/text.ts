import { stripVTControlCharacters } from 'node:util';
import { replaceUnsafe } from '../../contract/text';

/** Returns a text as one line without control sequences, because a terminal would execute them. */
export function printable(text: string): string {
  return replaceUnsafe(stripVTControlCharacters(text));
}

export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** Returns a table with headings, or an empty text if `rows` is empty. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : columns([headings, ...rows]);
}

export type Row = readonly [name: string, value: string];

/** Aligns the cells in columns that are two spaces apart. The last column is not padded. */
export function columns(rows: readonly (readonly string[])[], indent = ''): string {
  const lines = rows.map((row) => row.map(printable));
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const padded = (cell: string, column: number) => cell.padEnd(widths?.[column] ?? 0);
  return lines.map((line) => indent + line.map(padded).join('  ').trimEnd()).join('\n');
}
