import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import manifest from '../../package.json';
import lock from '../../package-lock.json';
import { adaptPage, COMPILED, DOCUMENTS, PUBLISHED, ROOT, run, STAGING, writeJson } from './staging';

const { name, version, description, license, engines, bin, dependencies, allowScripts } = manifest;

/** Parts of the worker's dependencies that production never loads: 110 MB of 190 MB. */
const UNUSED = [
  // Native code for other platforms, and the sources of the native code.
  ...['aarch64-apple-darwin', 'x86_64-apple-darwin', 'x86_64-pc-windows-msvc'].map(
    (platform) => `@temporalio/core-bridge/releases/${platform}`,
  ),
  ...['sdk-core', 'src', 'bridge-macros'].map((folder) => `@temporalio/core-bridge/${folder}`),
  '.bin',
];

/** The pages for operators of the worker and users of its CLI. These pages mention only files that are in the archive. */
const PAGES = [
  ...[
    'agent-service',
    'batches',
    'configuration',
    'deployment',
    'glossary',
    'limits',
    'metrics',
    'operations',
  ],
  ...['progress', 'request', 'result', 'runbook', 'schedules', 'temporal-plugins'],
];

const PICTURES = ['web-ui-batch.png', 'web-ui-decision.png'];

/** Packs the worker and the CLI with their dependencies. Two runs produce the same bytes. @returns the name of the archive */
export function packWorker(out: string): string {
  // The archive unpacks into a folder `package`, as npm's archives do.
  const folder = path.join(STAGING, 'package');
  const filter = (file: string) => !file.endsWith('.d.ts');
  cpSync(COMPILED, path.join(folder, 'dist'), { recursive: true, filter });
  for (const file of DOCUMENTS) cpSync(path.join(ROOT, file), path.join(folder, file));
  packDocuments(folder);
  install(folder);
  prune(path.join(folder, 'node_modules'));
  writeJson(path.join(folder, 'sbom.cdx.json'), billOfMaterials(folder));
  const file = `agent-follow-up-worker-${version}.tgz`;
  pack(folder, path.join(out, file));
  return file;
}

/**
 * Installs the dependencies with a separate lock file. The archive contains this file, so that scanners can read it, and `npm ci` can
 * install the same packages again.
 */
function install(folder: string): void {
  const itself = { name: `${name}-worker`, version, license, engines, bin, dependencies };
  writeJson(path.join(folder, 'package.json'), { ...itself, description, allowScripts });
  const packages = Object.entries(lock.packages as Readonly<Record<string, { readonly dev?: boolean }>>);
  const productionPackages = packages.filter(([place, { dev }]) => place !== '' && dev !== true);
  const locked = {
    ...lock,
    name: itself.name,
    packages: { '': itself, ...Object.fromEntries(productionPackages) },
  };
  writeJson(path.join(folder, 'npm-shrinkwrap.json'), locked);
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], folder);
}

function prune(nodeModules: string): void {
  // Only TypeScript files of a plugin would need the compiler, which would limit the archive to the platform of this machine.
  const compilers = readdirSync(path.join(nodeModules, '@swc')).filter((each) => each.startsWith('core-'));
  for (const each of [...UNUSED, ...compilers.map((compiler) => `@swc/${compiler}`)]) {
    rmSync(path.join(nodeModules, each), { recursive: true, force: true });
  }
  for (const file of readdirSync(nodeModules, { recursive: true, encoding: 'utf8' })) {
    if (/\.(d\.[cm]?ts|map)$/.test(file)) rmSync(path.join(nodeModules, file));
  }
}

/**
 * Returns the bill of materials in the CycloneDX format: every package of the archive with its license, from npm. npm does not know the
 * contents of the SDK's native core, so the crates of its lock file are added, including crates for other platforms.
 */
function billOfMaterials(folder: string): object {
  const made = run('npm', ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev'], folder);
  const bill = JSON.parse(made) as { readonly metadata: object; readonly components: readonly object[] };
  // The optional serial number and timestamp are removed, because they would differ in each archive.
  const metadata = { ...bill.metadata, timestamp: undefined };
  const cargoLock = readFileSync(
    path.join(folder, 'node_modules/@temporalio/core-bridge/Cargo.lock'),
    'utf8',
  );
  const pattern = /name = "(.+)"\nversion = "(.+)"\nsource = "registry.+"\nchecksum = "(.+)"/g;
  const crates = [...cargoLock.matchAll(pattern)].map(([, crate = '', number = '', content = '']) => {
    const purl = `pkg:cargo/${crate}@${number}`;
    const hashes = [{ alg: 'SHA-256', content }];
    return { 'bom-ref': purl, type: 'library', name: crate, version: number, purl, hashes };
  });
  return { ...bill, serialNumber: undefined, metadata, components: [...bill.components, ...crates] };
}

/** Copies the pages that the programs and other pages refer to. */
function packDocuments(folder: string): void {
  for (const each of ['deploy', 'examples/encryption', 'examples/tracing']) {
    cpSync(path.join(ROOT, each), path.join(folder, each), { recursive: true });
  }
  const names = [...PAGES.map((page) => `${page}.md`), ...PICTURES, ...PUBLISHED];
  for (const each of names) cpSync(path.join(ROOT, 'docs', each), path.join(folder, 'docs', each));
  const readme = readFileSync(path.join(ROOT, 'docs/deployment.md'), 'utf8');
  writeFileSync(path.join(folder, 'README.md'), readme.replace(/\]\(([\w-]+\.md)/g, '](docs/$1'));
  cpSync(path.join(ROOT, 'SECURITY.md'), path.join(folder, 'SECURITY.md'));
  for (const page of ['README.md', 'SECURITY.md', ...PAGES.map((each) => `docs/${each}.md`)]) {
    adaptPage(path.join(folder, page));
  }
}

/** Packs a folder. The same files give the same bytes, because the archive has no times, no owners and a fixed order. Requires GNU tar. */
function pack(folder: string, file: string): void {
  const reproducible = [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u+rw,go=u,go-w',
  ];
  run('tar', [...reproducible, '-czf', file, '-C', path.dirname(folder), path.basename(folder)]);
}
