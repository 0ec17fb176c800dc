import path from 'node:path';

const DOCS = path.resolve(__dirname, '../../docs');

export const PAGE_PATH = path.join(DOCS, 'performance.md');
export const GEARS_PLOT_PATH = path.join(DOCS, 'performance-gears.svg');
export const PLOT_PATH = path.join(DOCS, 'performance-cadence.svg');

/** Between these two lines of the page stands what the script has made. */
const BEGIN = '<!-- begin of what npm run bench:cadence makes -->';
const END = '<!-- end of what npm run bench:cadence makes -->';

/** The page with new tables. @throws TypeError when the page has lost its marks */
export function withTables(page: string, tables: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin)
    throw new TypeError(`docs/performance.md needs the lines ${BEGIN} and ${END}`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${tables}\n\n${page.slice(end)}`;
}
