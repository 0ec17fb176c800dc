import { padColumns, printable, widthOf } from './printable';

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
