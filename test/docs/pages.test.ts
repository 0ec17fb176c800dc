import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { allowScripts, scripts } from '../../package.json';
import { packages } from '../../package-lock.json';
import { EXIT_CODE } from '../../src/cli/command-outcome';
import { SEARCH_ATTRIBUTES } from '../../src/contract/names';
import { FAILURE_TYPES, PHASES } from '../../src/contract/result';
import { parseFault } from '../../sandbox/active-faults';
import { VARIABLES } from '../../src/worker/variables';
import { Program } from '../harness/program';

const root = path.resolve(__dirname, '../..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const docs = readdirSync(path.join(root, 'docs')).filter((file) => file.endsWith('.md'));
const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs.map((file) => `docs/${file}`)];

it('the files that `npm run docs` generates are up to date', async () => {
  const check = ['--import', 'tsx', 'tools/docs/docs.ts', '--check'];
  const { stdout, stderr, code } = await new Program(process.execPath, check, { cwd: root }).waitForEnd();
  expect({ stdout, stderr, code }).toEqual({ stdout: '', stderr: '', code: 0 });
});

it('allowScripts in package.json has each dependency with an install script', () => {
  const locked = Object.entries(packages as Readonly<Record<string, { hasInstallScript?: boolean }>>);
  const withInstallScript = locked.filter(([, { hasInstallScript }]) => hasInstallScript === true);
  const names = withInstallScript.map(([folder]) => folder.replace(/^.*node_modules\//, ''));
  expect(new Set(Object.keys(allowScripts))).toEqual(new Set(names));
});

it.each<[string, string, readonly (string | number)[], (name: string) => string]>([
  ['docs/result.md', 'Failures', FAILURE_TYPES, (name) => `^- \\*\\*\`${name}\`\\*\\*: `],
  ['docs/configuration.md', 'Exit codes', FAILURE_TYPES, (name) => `\`${name}\``],
  [
    'docs/configuration.md',
    'Exit codes',
    Object.values(EXIT_CODE),
    (code) => `^\\| ([\\d, ]+, )?${code}[ ,]`,
  ],
  ['docs/configuration.md', 'Variables of the worker', VARIABLES, (name) => `^\\| \`${name}\` `],
  ['docs/progress.md', 'Search attributes', SEARCH_ATTRIBUTES, (name) => `\`${name}\``],
  ['docs/progress.md', 'Phases', PHASES, (name) => `^- [^:]*\`${name}\``],
])('%s has in the section “%s” each of %j', (page, heading, names, pattern) => {
  const section = read(page)
    .split(/^#+ /m)
    .find((part) => part.startsWith(`${heading}\n`));
  const isDocumented = (name: string) => new RegExp(pattern(name), 'm').test(section ?? '');
  expect(names.map(String).filter((name) => !isDocumented(name))).toEqual([]);
});

/** Returns the names of the cases of a union type that a part of a source file declares. */
function casesOf(file: string, from: string, to: string): string[] {
  const source = read(file);
  const part = source.slice(source.indexOf(from), source.indexOf(to, source.indexOf(from)));
  return [...part.matchAll(/(?:do|kind): (?:literalOf\()?'([^']+)'/g)].map(([, name = '']) => name);
}

it.each([
  ['delivery states', 'src/follow-up/state.ts', 'export type DeliveryState', 'export type AcceptedDelivery'],
  ['steps', 'src/follow-up/step.ts', 'export type Step', 'export interface Moment'],
  ['events', 'src/follow-up/apply.ts', 'export type FollowUpEvent', 'export function apply'],
])('docs/architecture.md has a row for each of the %s', (table, file, from, to) => {
  const [, rows = ''] = read('docs/architecture.md').split(`<!-- table: ${table} -->`);
  const names = [...(rows.split('<!-- end of table -->')[0] ?? '').matchAll(/^\| `([^`]+)`/gm)];
  expect(names.map(([, name]) => name).sort()).toEqual(casesOf(file, from, to).sort());
});

it.each(pages)(
  'README.md links to %s, and the page names only scripts, faults, files and headings that exist',
  (page) => {
    const text = read(page);
    /** Returns the text that the first group of the pattern matches, for each match. */
    const matches = (pattern: RegExp) => [...text.matchAll(pattern)].map(([, first = '']) => first);
    expect(`${read('README.md')} ](README.md)`).toContain(`](${page})`);
    const named = matches(/npm (?:run (?:-s )?)?((?<=run (?:-s )?)[\w:-]+|test\b|start\b)/g);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(named));
    for (const json of matches(/--fault (?:'([^']*)')?/g)) expect(() => parseFault(json)).not.toThrow();
    for (const [, file = '', anchor] of text.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
      const content = read(file === '' ? page : path.join(path.dirname(page), file)).toLowerCase();
      // GitHub makes the anchor of a heading in this way.
      const anchors = [...content.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
        heading.replace(/[^\w\- ]/g, '').replaceAll(' ', '-'),
      );
      expect([undefined, ...anchors]).toContain(anchor);
    }
  },
);
