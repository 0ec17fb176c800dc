import path from 'node:path';
import { formatDuration } from '../../src/core/units';
import { OTHERS, OURS } from './schedules';
import type { Outcome, Row } from './simulate';

export const PAGE_PATH = path.resolve(__dirname, '../../docs/performance.md');

/** Between these two lines of the page stands what the script has made. */
const BEGIN = '<!-- begin of what npm run bench:cadence makes -->';
const END = '<!-- end of what npm run bench:cadence makes -->';

/** The page with a new table. @throws TypeError when the page has lost its marks */
export function withTable(page: string, table: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin)
    throw new TypeError(`docs/performance.md needs the lines ${BEGIN} and ${END}`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${table}\n\n${page.slice(end)}`;
}

/** The table of docs/performance.md, in Markdown as prettier formats it; of every second length, to stay short. */
export function cadenceTable(all: readonly Row[]): string {
  const rows = all.filter((_, index) => index % 2 === 0);
  const heading =
    'Polls of one turn, on average; from its end to the poll that sees it, in 95 of 100 turns at most:';
  const table = byTurn(
    rows,
    ({ meanPolls, p95LatenessMs }) =>
      `${Math.round(meanPolls).toLocaleString('en-US')}; ${lateness(p95LatenessMs)}`,
  );
  return `${heading}\n\n${table}`;
}

function byTurn(rows: readonly Row[], cell: (outcome: Outcome) => string): string {
  const headings = ['turn', OURS.name, ...OTHERS.map(({ name }) => name)];
  return markdownTable(
    headings,
    rows.map(({ turnMs, ours, others }) => [formatDuration(turnMs), cell(ours), ...others.map(cell)]),
  );
}

function lateness(ms: number): string {
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)}s` : formatDuration(ms);
}

/** A table whose columns but the first are numbers, hence aligned to the right. */
function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((_, column) =>
    Math.max(3, ...[headings, ...rows].map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => pad(cell, column, widths[column] ?? 0)).join(' | ')} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  );
  return [line(headings), line(rule), ...rows.map(line)].join('\n');
}

function pad(cell: string, column: number, width: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}
