import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { dependencies } from '../../package.json';
import { mustRun, Program } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';
import {
  artifactPath,
  ARTIFACTS,
  createProjectFolder,
  exampleProjectFolder,
  unpackedPath,
} from './end-to-end-environment';

const filesOf = (name: (typeof ARTIFACTS)[number]) =>
  readdirSync(unpackedPath(name), { recursive: true, encoding: 'utf8' });

/** Returns the text of a file in an archive. */
const textOf = (name: (typeof ARTIFACTS)[number], file: string) =>
  readFileSync(unpackedPath(name, file), 'utf8');

/** The anchors of a page's headings, as GitHub makes them. */
const anchorsIn = (page: string): string[] =>
  [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );

/** Returns the links of a page to files that the archive does not contain, and to headings that the target does not have. */
function brokenLinksIn(name: (typeof ARTIFACTS)[number], page: string): string[] {
  const links = [...textOf(name, page).matchAll(/\]\((?!https:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
  return links.flatMap(([link, file = '', anchor]) => {
    const target = file === '' ? page : path.posix.join(path.dirname(page), file);
    const isInside = !target.startsWith('..') && existsSync(unpackedPath(name, target));
    const isFound = isInside && (anchor === undefined || anchorsIn(textOf(name, target)).includes(anchor));
    return isFound ? [] : [link];
  });
}

const SHIPPED_FOLDERS = /(?<![\w./:-])(?:deploy|docs|examples)\/[\w./-]*\w/g;
const PAGE_NAMES = /(?<![\w./-])[\w-]+\.md\b/g;
const REPOSITORY_NAMES =
  /\bnpm (?:run [\w:-]+|test|start)\b|(?<![\w./:-])(?:src|test|tools|sandbox)\/[\w./-]+\.ts\b/g;
const NOTE = 'that this page names are in the repository.';

/** Returns the files and pages that a text of an archive names and the archive does not contain. */
function missingNamesIn(name: (typeof ARTIFACTS)[number], text: string): string[] {
  const isMissing = (file: string) => !existsSync(unpackedPath(name, file));
  const files = (text.match(SHIPPED_FOLDERS) ?? []).filter(isMissing);
  const pages = (text.match(PAGE_NAMES) ?? []).filter((page) => isMissing(page) && isMissing(`docs/${page}`));
  return [...files, ...pages];
}

describe.each(ARTIFACTS)('the archive of the %s', (name) => {
  const ownFiles = () => filesOf(name).filter((file) => !file.includes('node_modules/'));
  const pages = () => ownFiles().filter((file) => file.endsWith('.md'));
  const withProblems = (problemsOf: (file: string) => string[], files: readonly string[]) =>
    files.map((file) => [file, ...problemsOf(file)]).filter(([, first]) => first !== undefined);

  it('has the pages that callers, operators and reviewers need, and every link leads to a file and a heading in the archive, or to the web', () => {
    const needed = 'guarantees notifications client plugin performance testing upgrading start'.split(' ');
    expect(pages()).toEqual(
      expect.arrayContaining(['README.md', 'SECURITY.md', ...needed.map((page) => `docs/${page}.md`)]),
    );
    expect(withProblems((page) => brokenLinksIn(name, page), pages())).toEqual([]);
  });

  it('its pages, types and messages name only files that the archive contains', () => {
    // The changelog covers the whole project.
    const texts = ownFiles().filter((file) => /\.(md|js|d\.ts)$/.test(file) && file !== 'CHANGELOG.md');
    expect(withProblems((file) => missingNamesIn(name, textOf(name, file)), texts)).toEqual([]);
    const types = ownFiles().filter((file) => file.endsWith('.d.ts'));
    expect(withProblems((file) => textOf(name, file).match(REPOSITORY_NAMES) ?? [], types)).toEqual([]);
  });

  it('its pages have no commands of the repository, except pages with a note that states this', () => {
    const unnoted = (page: string) => {
      const text = textOf(name, page);
      return text.includes(NOTE) ? [] : (text.match(REPOSITORY_NAMES) ?? []);
    };
    expect(withProblems(unnoted, pages())).toEqual([]);
    // Readers of these pages run the commands.
    const noted = pages().filter((page) => textOf(name, page).includes(NOTE));
    const developers = ['architecture', 'performance', 'proofs', 'temporal-server'];
    expect([...developers.map((page) => `docs/${page}.md`), 'CHANGELOG.md']).toEqual(
      expect.arrayContaining(noted),
    );
  });

  it('its README begins with the first steps, and defines an agent job', () => {
    const [, firstSection = ''] = textOf(name, 'README.md').split(/^## /m);
    expect(firstSection).toMatch(/^Start here\n/);
    expect(firstSection).toContain('An **agent job** is a run of a coding agent on a repository.');
    for (const program of [
      'temporal server start-dev',
      'agent-follow-up-sandbox',
      'dist/worker.js',
      'agent-follow-up send',
    ])
      expect(firstSection).toContain(program);
  });

  it('no page runs a program with npx in a way that downloads a missing program or keeps its options for npx, except pages with the note', () => {
    const downloads = (page: string) => textOf(name, page).match(/(?:^|`)npx (?!--no -- ).*/gm) ?? [];
    const unnoted = pages().filter((page) => !textOf(name, page).includes(NOTE));
    expect(withProblems(downloads, unnoted)).toEqual([]);
  });
});

describe('the worker’s archive', () => {
  type Package = Partial<Record<'name' | 'version', string>>;
  type Component = Package & { purl: string; licenses?: object[]; hashes?: object[] };
  const json = (file: string): unknown => JSON.parse(readFileSync(unpackedPath('worker', file), 'utf8'));

  it('contains the dependencies in the tested versions, and a lock file for `npm ci` and scanners with the same versions', () => {
    const { packages } = json('npm-shrinkwrap.json') as { packages: Record<string, Package> };
    for (const [name, version] of Object.entries(dependencies)) {
      expect(packages[`node_modules/${name}`]).toMatchObject({ version });
      expect(json(`node_modules/${name}/package.json`)).toMatchObject({ name, version });
    }
  });

  it('contains no development dependencies, type declarations, source maps or binaries of other platforms', () => {
    const unused = /node_modules\/(jest|typescript)\/|\.d\.ts$|\.map$|\/@swc\/core-|windows|darwin/;
    expect(filesOf('worker').filter((file) => unused.test(file))).toEqual([]);
  });

  it('has a bill of materials with each package, its license, and the crates of the native core', () => {
    const bill = json('sbom.cdx.json') as { readonly components: readonly Component[] };
    const componentsOf = (kind: string) =>
      bill.components.filter(({ purl }) => purl.startsWith(`pkg:${kind}/`));
    // Folders inside a package can also have a package.json, which then lacks the name or the version.
    const installed = filesOf('worker')
      .filter((file) => /node_modules\/(@[^/]+\/)?[^/@]+\/package\.json$/.test(file))
      .map((file) => json(file) as Package)
      .filter(({ name, version }) => name !== undefined && version !== undefined);
    const named = (all: readonly Package[]) => all.map(({ name, version }) => `${name}@${version}`);
    expect(named(componentsOf('npm'))).toEqual(expect.arrayContaining(named(installed)));
    // The manifest of unionfs names no license, but its LICENSE file does (tools/package/licenses.ts).
    const withoutLicense = componentsOf('npm').filter(({ licenses }) => licenses === undefined);
    expect(withoutLicense.map(({ name }) => name)).toEqual(['unionfs']);
    expect(componentsOf('cargo').map(({ name }) => name)).toEqual(
      expect.arrayContaining(['tokio', 'tonic', 'rustls']),
    );
    expect(componentsOf('cargo').every(({ hashes }) => hashes?.length === 1)).toBe(true);
  });
});

it('the sandbox’s package installs the program agent-follow-up-sandbox, which runs and prints its usage with --help', async () => {
  const program = path.join(exampleProjectFolder(), 'node_modules/.bin/agent-follow-up-sandbox');
  const sandbox = new Program(program, ['--port', '0'], { cwd: createProjectFolder('sandbox', {}) });
  await sandbox.waitForOutput(/Every request gets a line below/);
  await sandbox.waitForOutput(/agent-follow-up send --project docs .+ --max-staleness 2s/);
  sandbox.signal('SIGTERM');
  expect(await sandbox.waitForEnd()).toMatchObject({ code: 0 });
  expect(await mustRun(program, ['--help'])).toContain('Usage: agent-follow-up-sandbox ');
});

const secondFolder = temporaryFolder();

it('a second build makes archives with the same bytes', async () => {
  await mustRun('npm', ['run', 'package', '--', secondFolder], { cwd: ROOT });
  for (const file of ARTIFACTS.map((name) => artifactPath(name))) {
    const second = readFileSync(path.join(secondFolder, path.basename(file)));
    expect([file, second.equals(readFileSync(file))]).toEqual([file, true]);
  }
});
