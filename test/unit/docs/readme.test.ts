import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { scripts } from '../../../package.json';
import { requestTable, TABLE_FILE, tableIn } from '../../../scripts/request-docs';
import { EXIT } from '../../../src/cli/exit-codes';
import { SEARCH_ATTRIBUTES } from '../../../src/core/names';
import { FAILURE_TYPES, PHASES } from '../../../src/core/result';
import { parseFault } from '../../../sandbox/fault-board';
import { VARIABLES } from '../../../src/worker/variables';

const root = path.resolve(__dirname, '../../..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const readme = read('README.md');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(path.join(root, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
];

/** The cells of the table rows below a heading, without Markdown's code marks. */
function rows(heading: string): string[][] {
  const section = readme.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|').map((cell) => cell.replaceAll('`', '').trim()));
}

describe('the README', () => {
  it('tells the size of the recorded history of a follow-up with ten polls', () => {
    const recorded = JSON.parse(read('test/replay/histories/0.3.0/ten-polls.json')) as {
      events: { workflowTaskStartedEventAttributes?: { historySizeBytes?: string } }[];
    };
    const sizes = recorded.events.flatMap(({ workflowTaskStartedEventAttributes: started }) =>
      started?.historySizeBytes === undefined ? [] : [Number(started.historySizeBytes)],
    );
    const kilobytes = (Math.max(...sizes) / 1_000).toFixed(1);

    expect(readme).toContain(
      `A follow-up with ten polls makes ${recorded.events.length} events of history, ${kilobytes} KB`,
    );
  });

  it('has the table of request fields', () => {
    const cells = (table = ''): string[][] =>
      table
        .split('\n')
        .filter((line) => !/^[|\s-]+$/.test(line))
        .map((line) => line.split('|').map((cell) => cell.trim()));

    // Run `npm run docs` after a change of the table.
    expect(cells(tableIn(readFileSync(TABLE_FILE, 'utf8')))).toEqual(cells(requestTable()));
  });

  it('lists every exit code of the starter', () => {
    const listed = rows('Failures and exit codes').flatMap(([, , codes = '']) => codes.match(/\d+/g) ?? []);

    expect([...new Set(listed.map(Number))].sort()).toEqual([...new Set(Object.values(EXIT))].sort());
  });

  it.each(FAILURE_TYPES)('names the failure %s', (type) => {
    expect(rows('Failures and exit codes').map(([, end]) => end)).toContain(type);
  });

  it.each(VARIABLES)('lists the variable %s', (name) => {
    const names = rows('Run the worker').map(([, cell = '']) => cell);

    expect(names.join(' ').split(' ')).toContain(name);
  });

  it.each([...PHASES, ...SEARCH_ATTRIBUTES])('names %s', (name) => {
    expect(readme).toContain(`\`${name}\``);
  });
});

describe.each(pages)('%s', (page) => {
  const text = read(page);

  it('names only npm scripts that exist', () => {
    const named = [...text.matchAll(/npm (?:run ([\w:-]+)|(test|start)\b)/g)].map(
      ([, run, short]) => run ?? short ?? '',
    );

    for (const script of named) expect(Object.keys(scripts)).toContain(script);
  });

  it('links only to files and headings that exist', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];

    for (const [, file = '', anchor] of links) {
      const target = file === '' ? page : path.join(path.dirname(page), file);
      const content = read(target);
      if (anchor === undefined) continue;
      const headings = [...content.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => slug(heading));
      expect(headings).toContain(anchor);
    }
  });

  it('shows only faults that the sandbox takes', () => {
    const shown = [...text.matchAll(/--fault (?:'([^']*)')?/g)].map(([, json = '']) => json);

    for (const json of shown) expect(() => parseFault(json)).not.toThrow();
  });
});

/** As GitHub makes the anchor of a heading. */
function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
