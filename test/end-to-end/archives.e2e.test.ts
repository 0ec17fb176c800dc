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

// The artefacts are made once more.
jest.setTimeout(600_000);

const filesOf = (name: (typeof ARTIFACTS)[number]) =>
  readdirSync(unpackedPath(name), { recursive: true, encoding: 'utf8' });

const FOLDERS = /(?<![\w./:-])(?:deploy|dist|docs|examples|sandbox|src|test|tools|\.ci)\/[\w./-]*/g;

/** What a page of an archive names and is not in it: files, other pages, and commands. */
function missingIn(name: (typeof ARTIFACTS)[number], page: string): string[] {
  const text = readFileSync(unpackedPath(name, page), 'utf8');
  const found = (pattern: RegExp) => text.match(pattern) ?? [];
  const isThere = (file: string) => existsSync(unpackedPath(name, file));
  const links = [...text.matchAll(/\]\((?!\w+:|#)([^)#]+)/g)].map(([, target = '']) =>
    path.join(path.dirname(page), target),
  );
  const files = [...links, ...found(FOLDERS).map((each) => each.replace(/[./]+$/, ''))];
  const pages = found(/(?<![\w./-])[\w-]+\.md\b/g).filter((each) => !isThere(path.join('docs', each)));
  const commands = found(/npm (?:run [\w:-]+|test|start)/g);
  return [...[...files, ...pages].filter((file) => !isThere(file)), ...commands];
}

it.each(ARTIFACTS)('the archive of the %s has pages that name only files and commands in it', (name) => {
  // The changelog tells of the whole project.
  const isPage = (file: string) => /^(docs\/)?[^/]+\.md$/.test(file) && file !== 'CHANGELOG.md';
  const missing = filesOf(name)
    .filter(isPage)
    .map((page) => [page, ...missingIn(name, page)]);
  expect(missing.filter(([, first]) => first !== undefined)).toEqual([]);
});

describe('the worker’s archive', () => {
  type Package = Partial<Record<'name' | 'version', string>>;
  type Component = Package & { purl: string; licenses?: object[]; hashes?: object[] };
  const json = (file: string): unknown => JSON.parse(readFileSync(unpackedPath('worker', file), 'utf8'));

  it('holds what its lock file names, which scanners read and `npm ci` installs, of the versions that are tested', () => {
    const { packages } = json('npm-shrinkwrap.json') as { packages: Record<string, Package> };
    for (const [name, version] of Object.entries(dependencies)) {
      expect(packages[`node_modules/${name}`]).toMatchObject({ version });
      expect(json(`node_modules/${name}/package.json`)).toMatchObject({ name, version });
    }
  });

  it('has nothing that production does not run', () => {
    const unused = /node_modules\/(jest|typescript)\/|\.d\.ts$|\.map$|\/@swc\/core-|windows|darwin/;
    expect(filesOf('worker').filter((file) => unused.test(file))).toEqual([]);
  });

  it('has a bill of materials with each package in it, a licence of each, and the crates of the native core', () => {
    const bill = json('sbom.cdx.json') as { readonly components: readonly Component[] };
    const of = (kind: string) => bill.components.filter(({ purl }) => purl.startsWith(`pkg:${kind}/`));
    // Folders inside packages have a package.json, too: without a name or a version.
    const installed = filesOf('worker')
      .filter((file) => /node_modules\/(@[^/]+\/)?[^/@]+\/package\.json$/.test(file))
      .map((file) => json(file) as Package)
      .filter(({ name, version }) => name !== undefined && version !== undefined);
    const named = (all: readonly Package[]) => all.map(({ name, version }) => `${name}@${version}`);
    expect(named(of('npm'))).toEqual(expect.arrayContaining(named(installed)));
    // Its manifest names no licence; its LICENSE file does (tools/package/licenses.ts).
    const without = of('npm').filter(({ licenses }) => licenses === undefined);
    expect(without.map(({ name }) => name)).toEqual(['unionfs']);
    expect(of('cargo').map(({ name }) => name)).toEqual(expect.arrayContaining(['tokio', 'tonic', 'rustls']));
    expect(of('cargo').every(({ hashes }) => hashes?.length === 1)).toBe(true);
  });
});

it('the sandbox’s package runs by its name, and says how it is called', async () => {
  const program = path.join(exampleProjectFolder(), 'node_modules/.bin/agent-follow-up-sandbox');
  const sandbox = new Program(program, ['--port', '0'], { cwd: createProjectFolder('sandbox', {}) });
  await sandbox.waitForOutput(/Every request gets a line below/);
  await sandbox.waitForOutput(/node dist\/starter\.js send --project docs/);
  sandbox.signal('SIGTERM');
  expect(await sandbox.waitForEnd()).toMatchObject({ code: 0 });
  expect(await mustRun(program, ['--help'])).toContain('Usage: agent-follow-up-sandbox ');
});

const again = temporaryFolder();

it('packed twice, each archive has the same bytes', async () => {
  await mustRun('npm', ['run', 'package', '--', again], { cwd: ROOT });
  for (const file of ARTIFACTS.map((name) => artifactPath(name))) {
    const second = readFileSync(path.join(again, path.basename(file)));
    expect([file, second.equals(readFileSync(file))]).toEqual([file, true]);
  }
});
