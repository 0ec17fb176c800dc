import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { allowScripts, scripts } from '../../package.json';
import { packages } from '../../package-lock.json';
import { errorTable, ERRORS_FILE } from '../../scripts/error-docs';
import { METRICS_FILE, metricsTable } from '../../scripts/metrics-docs';
import { requestTable, TABLE_FILE, tableIn } from '../../scripts/request-docs';
import { EXIT } from '../../src/cli/ends';
import { SEARCH_ATTRIBUTES } from '../../src/core/names';
import { FAILURE_TYPES, PHASES } from '../../src/core/result';
import { parseFault } from '../../sandbox/fault-board';
import { VARIABLES } from '../../src/worker/variables';

const root = path.resolve(__dirname, '../..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(path.join(root, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];

it('the first command of the README makes npm warn of no install script', () => {
  // npm 11 warns of each that `allowScripts` in package.json does not decide on.
  const locked = Object.entries(packages as Readonly<Record<string, { hasInstallScript?: boolean }>>);
  const withScript = locked.filter(
    ([place, { hasInstallScript }]) => place !== '' && hasInstallScript === true,
  );
  const names = withScript.map(([place]) => place.slice(place.lastIndexOf('node_modules/') + 13));
  expect(Object.keys(allowScripts).sort()).toEqual([...new Set(names)].sort());
});

/** What stands below a heading, up to the next one. */
function section(page: string, heading: string): string {
  const parts = read(page).split(/^#+ /m);
  return parts.find((part) => part.startsWith(`${heading}\n`)) ?? '';
}

/** Characters of a line of prose; some words and links can't be broken. */
const MAX_LINE = 120;

/** The cells of a table, whatever the width of its columns. */
function cells(table = ''): string[][] {
  const lines = table.split('\n').filter((line) => !/^[|\s-]+$/.test(line));
  return lines.map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
}

it.each(pages.filter((page) => page !== 'README.md'))('README.md links %s', (page) => {
  expect(read('README.md')).toContain(`](${page})`);
});

it.each([
  ['request fields', TABLE_FILE, requestTable],
  ['metrics', METRICS_FILE, metricsTable],
  ['error codes', ERRORS_FILE, errorTable],
])('the table of %s is the one that `npm run docs` makes', (_, file, table) => {
  expect(cells(tableIn(readFileSync(file, 'utf8')))).toEqual(cells(table()));
});

it.each<[string, string, readonly string[], (name: string) => string]>([
  ['docs/result.md', 'Failures', FAILURE_TYPES, (name) => `^- \\*\\*\`${name}\`\\*\\*: `],
  ['docs/configuration.md', 'Exit codes', FAILURE_TYPES, (name) => `\`${name}\``],
  ['docs/configuration.md', 'Variables of the worker', VARIABLES, (name) => `^\\| \`${name}\` `],
  ['docs/progress.md', 'Search attributes', SEARCH_ATTRIBUTES, (name) => `\`${name}\``],
  ['docs/progress.md', 'Phases', PHASES, (name) => `^- [^:]*\`${name}\``],
])('%s explains below “%s” each of %j', (page, heading, names, pattern) => {
  const isTold = (name: string) => new RegExp(pattern(name), 'm').test(section(page, heading));
  expect(names.filter((name) => !isTold(name))).toEqual([]);
});

it('docs/configuration.md lists every exit code of the starter, and no other', () => {
  // The first table below the heading is the starter's.
  const [ofStarter = ''] = section('docs/configuration.md', 'Exit codes').split('Of the worker:');
  const rows = [...ofStarter.matchAll(/^\| ([\d, ]+) +\|/gm)];
  const listed = rows.flatMap(([, codes = '']) => codes.match(/\d+/g) ?? []);
  expect(listed.map(Number).sort()).toEqual(Object.values(EXIT).sort());
});

describe.each(pages)('%s', (page) => {
  const text = read(page);
  /** What the first group of a pattern finds. */
  const found = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, first = '']) => first);

  it('has lines that fit a screen, except for tables, code and what a script has made', () => {
    const prose = text.replace(/<!-- begin [\s\S]*?<!-- end |^```[\s\S]*?^```$/gm, '').split('\n');
    expect(prose.filter((line) => line.length > MAX_LINE && !/^(\||!\[)/.test(line))).toEqual([]);
  });

  it('names only npm scripts that exist, and faults that the sandbox takes', () => {
    const named = found(/npm (?:run (?:-s )?)?((?<=run (?:-s )?)[\w:-]+|test\b|start\b)/g);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
    for (const json of found(/--fault (?:'([^']*)')?/g)) expect(() => parseFault(json)).not.toThrow();
  });

  it('links only to files and headings that exist', () => {
    for (const [, file = '', anchor] of text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
      const content = read(file === '' ? page : path.join(path.dirname(page), file));
      const headings = [...content.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slug(heading));
      expect([undefined, ...headings]).toContain(anchor);
    }
  });
});

/** As GitHub makes the anchor of a heading. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
