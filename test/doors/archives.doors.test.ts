import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { dependencies } from '../../package.json';
import { eventually } from '../harness/eventually';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';
import { artifact, mustRun } from './ground';

// The artefacts are made once more.
jest.setTimeout(600_000);

const ARCHIVES = ['client', 'plugin', 'sandbox', 'worker'] as const;
const folder = temporaryFolder();
const unpacked = (name: string, file = '.') => path.join(folder, name, 'package', file);
const json = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

beforeAll(async () => {
  for (const name of ARCHIVES) {
    mkdirSync(path.join(folder, name));
    await mustRun('tar', ['-xzf', artifact(name), '-C', path.join(folder, name)], { cwd: folder });
  }
});

describe.each(ARCHIVES)('the archive of the %s', (name) => {
  it('has pages that name only files and commands which are in it', () => {
    const all = readdirSync(unpacked(name), { recursive: true, encoding: 'utf8' });
    // The changelog tells of the whole project.
    const isPage = (file: string) => /^(docs\/)?[^/]+\.md$/.test(file) && file !== 'CHANGELOG.md';
    const missing = all.filter(isPage).flatMap((page) => {
      const text = readFileSync(unpacked(name, page), 'utf8');
      const links = [...text.matchAll(/\]\((?!\w+:|#)([^)#]+)/g)].map(([, target = '']) =>
        path.join(path.dirname(page), target),
      );
      const folders =
        /(?<![\w./:-])(?:bench|deploy|dev|dist|docs|examples|sandbox|scripts|src|test|\.ci)\/[\w./-]*/g;
      const named = (text.match(folders) ?? []).map((each) => each.replace(/[./]+$/, ''));
      const pages = (text.match(/(?<![\w./-])[\w-]+\.md\b/g) ?? []).filter(
        (each) => !existsSync(unpacked(name, each)) && !existsSync(unpacked(name, path.join('docs', each))),
      );
      const commands = text.match(/npm (?:run [\w:-]+|test|start)/g) ?? [];
      const files = [...links, ...named].filter((file) => !existsSync(unpacked(name, file)));
      return [...files, ...pages, ...commands].map((each) => `${page}: ${each}`);
    });
    expect(missing).toEqual([]);
  });
});

it('packed twice, each archive has the same bytes', async () => {
  const again = path.join(folder, 'again');
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
  expect(sums(again)).toHaveLength(ARCHIVES.length);
});

describe('the worker’s archive', () => {
  it('has a lock file by which npm installs the same anew', async () => {
    const cwd = path.join(folder, 'locked');
    mkdirSync(cwd);
    for (const file of ['package.json', 'npm-shrinkwrap.json']) {
      await writeFile(path.join(cwd, file), readFileSync(unpacked('worker', file)));
    }
    await mustRun('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit'], { cwd });
    const version = (name: string) => json(path.join(cwd, 'node_modules', name, 'package.json'));
    for (const [name, locked] of Object.entries(dependencies)) {
      expect(version(name)).toMatchObject({ name, version: locked });
    }
  });

  it('has a bill of materials with each package in it, a licence of each, and the crates of the native core', () => {
    interface Component {
      readonly name?: string;
      readonly version?: string;
      readonly purl: string;
      readonly licenses?: readonly object[];
      readonly hashes?: readonly object[];
    }
    const bill = json(unpacked('worker', 'sbom.cdx.json')) as { readonly components: readonly Component[] };
    const of = (kind: string) => bill.components.filter(({ purl }) => purl.startsWith(`pkg:${kind}/`));
    // Folders inside packages have a package.json, too: without a name or a version.
    const installed = readdirSync(unpacked('worker'), { recursive: true, encoding: 'utf8' })
      .filter((file) => /node_modules\/(@[^/]+\/)?[^/@]+\/package\.json$/.test(file))
      .map((file) => json(unpacked('worker', file)) as Component)
      .filter(({ name, version }) => name !== undefined && version !== undefined);
    const listed = of('npm').map(({ name, version }) => `${name}@${version}`);
    expect(listed).toEqual(
      expect.arrayContaining(installed.map(({ name, version }) => `${name}@${version}`)),
    );
    // Its manifest names no licence; its LICENSE file does (scripts/licenses.ts).
    const without = of('npm').filter(({ licenses }) => licenses === undefined);
    expect(without.map(({ name }) => name)).toEqual(['unionfs']);
    expect(of('cargo').map(({ name }) => name)).toEqual(expect.arrayContaining(['tokio', 'tonic', 'rustls']));
    expect(of('cargo').every(({ hashes }) => hashes?.length === 1)).toBe(true);
  });
});

it('the sandbox’s package runs by its name, and says how it is called', async () => {
  await writeFile(path.join(folder, 'package.json'), '{ "name": "team", "private": true }');
  const install = ['install', '--no-audit', '--no-fund', artifact('sandbox')];
  await mustRun('npm', install, { cwd: folder });
  const program = path.join(folder, 'node_modules/.bin/agent-follow-up-sandbox');
  const child = spawn(program, ['--port', '0'], { cwd: folder });
  const exited = once(child, 'exit');
  let printed = '';
  child.stdout.on('data', (text: Buffer) => (printed += text.toString()));
  try {
    await eventually('it listens', () => printed.includes('Every request gets a line below'));
    const baseUrl = /export AGENT_API_BASE_URL=(\S+)/.exec(printed)?.[1] ?? '';
    const added = await fetch(`${baseUrl}/sandbox/jobs`, { method: 'POST', body: '{"id":"guide"}' });
    expect(added.status).toBe(200);
    expect(printed).toContain('agent-follow-up send --project docs');
    child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
  } finally {
    child.kill('SIGKILL');
  }
  const help = await mustRun(program, ['--help'], { cwd: folder });
  expect(help).toContain('Usage: agent-follow-up-sandbox ');
});
