import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
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

// The last test builds all artifacts again.
jest.setTimeout(600_000);

const filesOf = (name: (typeof ARTIFACTS)[number]) =>
  readdirSync(unpackedPath(name), { recursive: true, encoding: 'utf8' });

const FOLDERS = /(?<![\w./:-])(?:deploy|dist|docs|examples|sandbox|src|test|tools|\.ci)\/[\w./-]*/g;

/** Returns the files, pages and commands that a page of an archive names and the archive does not contain. */
function missingIn(name: (typeof ARTIFACTS)[number], page: string): string[] {
  const text = readFileSync(unpackedPath(name, page), 'utf8');
  const matches = (pattern: RegExp) => text.match(pattern) ?? [];
  const isInArchive = (file: string) => existsSync(unpackedPath(name, file));
  const links = [...text.matchAll(/\]\((?!\w+:|#)([^)#]+)/g)].map(([, target = '']) =>
    path.join(path.dirname(page), target),
  );
  const files = [...links, ...matches(FOLDERS).map((each) => each.replace(/[./]+$/, ''))];
  const pages = matches(/(?<![\w./-])[\w-]+\.md\b/g).filter((each) => !isInArchive(path.join('docs', each)));
  const commands = matches(/npm (?:run [\w:-]+|test|start)/g);
  return [...[...files, ...pages].filter((file) => !isInArchive(file)), ...commands];
}

it.each(ARTIFACTS)(
  'the pages in the archive of the %s name only files and commands that the archive contains',
  (name) => {
    // The changelog covers the whole project.
    const isPage = (file: string) => /^(docs\/)?[^/]+\.md$/.test(file) && file !== 'CHANGELOG.md';
    const missing = filesOf(name)
      .filter(isPage)
      .map((page) => [page, ...missingIn(name, page)]);
    expect(missing.filter(([, first]) => first !== undefined)).toEqual([]);
  },
);

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
  await sandbox.waitForOutput(/node dist\/starter\.js send --project docs/);
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
