import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import { dependencies } from '../../package.json';
import { eventually } from '../harness/eventually';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';
import { ARTIFACTS, mustRun, teamFolder, unpacked } from './ground';

// The artefacts are made once more.
jest.setTimeout(600_000);

const filesOf = (name: (typeof ARTIFACTS)[number]) =>
  readdirSync(unpacked(name), { recursive: true, encoding: 'utf8' });

it.each(ARTIFACTS)(
  'the archive of the %s has pages that name only files and commands which are in it',
  (name) => {
    // The changelog tells of the whole project.
    const isPage = (file: string) => /^(docs\/)?[^/]+\.md$/.test(file) && file !== 'CHANGELOG.md';
    const missing = filesOf(name)
      .filter(isPage)
      .flatMap((page) => {
        const text = readFileSync(unpacked(name, page), 'utf8');
        const links = [...text.matchAll(/\]\((?!\w+:|#)([^)#]+)/g)].map(([, target = '']) =>
          path.join(path.dirname(page), target),
        );
        const folders =
          /(?<![\w./:-])(?:bench|deploy|dev|dist|docs|examples|sandbox|scripts|src|test|\.ci)\/[\w./-]*/g;
        const named = (text.match(folders) ?? []).map((each) => each.replace(/[./]+$/, ''));
        const isThere = (file: string) => existsSync(unpacked(name, file));
        const pages = (text.match(/(?<![\w./-])[\w-]+\.md\b/g) ?? []).filter(
          (each) => !isThere(each) && !isThere(path.join('docs', each)),
        );
        const commands = text.match(/npm (?:run [\w:-]+|test|start)/g) ?? [];
        const files = [...links, ...named].filter((file) => !isThere(file));
        return [...files, ...pages, ...commands].map((each) => `${page}: ${each}`);
      });
    expect(missing).toEqual([]);
  },
);

describe('the worker’s archive', () => {
  interface Package {
    readonly name?: string;
    readonly version?: string;
  }
  interface Component extends Package {
    readonly purl: string;
    readonly licenses?: readonly object[];
    readonly hashes?: readonly object[];
  }
  const json = (file: string): unknown => JSON.parse(readFileSync(unpacked('worker', file), 'utf8'));

  it('holds what its lock file names, which scanners read and `npm ci` installs, of the versions that are tested', () => {
    const { packages } = json('npm-shrinkwrap.json') as {
      readonly packages: Readonly<Record<string, Package>>;
    };
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
    // Its manifest names no licence; its LICENSE file does (scripts/licenses.ts).
    const without = of('npm').filter(({ licenses }) => licenses === undefined);
    expect(without.map(({ name }) => name)).toEqual(['unionfs']);
    expect(of('cargo').map(({ name }) => name)).toEqual(expect.arrayContaining(['tokio', 'tonic', 'rustls']));
    expect(of('cargo').every(({ hashes }) => hashes?.length === 1)).toBe(true);
  });
});

it('the sandbox’s package runs by its name, and says how it is called', async () => {
  const cwd = teamFolder('sandbox', {});
  const program = path.join(cwd, '../node_modules/.bin/agent-follow-up-sandbox');
  const child = spawn(program, ['--port', '0'], { cwd });
  const exited = once(child, 'exit');
  let printed = '';
  child.stdout.on('data', (text: Buffer) => (printed += text.toString()));
  try {
    await eventually('it listens', () => printed.includes('Every request gets a line below'));
    const baseUrl = /export AGENT_API_BASE_URL=(\S+)/.exec(printed)?.[1] ?? '';
    const added = await fetch(`${baseUrl}/sandbox/jobs`, { method: 'POST', body: '{"id":"guide"}' });
    expect(added.status).toBe(200);
    expect(printed).toContain('node dist/starter.js send --project docs');
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  } finally {
    child.kill('SIGKILL');
  }
  const help = await mustRun(program, ['--help'], { cwd });
  expect(help).toContain('Usage: agent-follow-up-sandbox ');
});

const again = temporaryFolder();

it('packed twice, each archive has the same bytes', async () => {
  await mustRun('npm', ['run', 'package', '--', again], { cwd: ROOT });
  const sums = (from: string) =>
    readdirSync(from)
      .filter((file) => file.endsWith('.tgz'))
      .map((file) => [
        file,
        createHash('sha256')
          .update(readFileSync(path.join(from, file)))
          .digest('hex'),
      ]);
  expect(sums(again)).toEqual(sums(path.join(ROOT, 'artifacts')));
  expect(sums(again)).toHaveLength(ARTIFACTS.length);
});
