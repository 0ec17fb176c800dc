/** The archives of the programs, which have their dependencies and need no package registry. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import manifest from '../../package.json';
import lock from '../../package-lock.json';
import { publishFields } from '../lib/publish-fields';
import { copyRequiredFiles, findPackages } from './imports';
import { packPages } from './pages';
import { COMPILED, run, STAGING, writeJson } from './staging';

const { name, version, license, engines, bin, dependencies, allowScripts } = manifest;

/** Parts of the worker's dependencies that production never loads: 110 MB of 190 MB. */
const UNUSED = [
  // Native code for other platforms, and the sources of the native code.
  ...['aarch64-apple-darwin', 'x86_64-apple-darwin', 'x86_64-pc-windows-msvc'].map(
    (platform) => `@temporalio/core-bridge/releases/${platform}`,
  ),
  ...['sdk-core', 'src', 'bridge-macros'].map((folder) => `@temporalio/core-bridge/${folder}`),
  '.bin',
];

interface Program {
  readonly name: string;
  readonly description: string;
  /** The page that becomes the README of the archive. */
  readonly readme: string;
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Packs the worker and the CLI with their dependencies. Two runs produce the same bytes. @returns the names of the archives */
export function packPrograms(out: string): string[] {
  const worker = path.join(STAGING, 'worker/package');
  cpSync(COMPILED, path.join(worker, 'dist'), { recursive: true, filter: (file) => !file.endsWith('.d.ts') });
  const cli = path.join(STAGING, 'cli/package');
  copyRequiredFiles(COMPILED, ['starter.js'], path.join(cli, 'dist'));
  return [
    packProgram(cli, out, {
      name: `${name}-cli`,
      description: 'The command line of durable follow-ups to agent jobs, for operators and scripts.',
      readme: 'cli.md',
      dependencies: findPackages(path.join(cli, 'dist')),
    }),
    packProgram(worker, out, {
      name: `${name}-worker`,
      description: manifest.description,
      readme: 'deployment.md',
      dependencies,
    }),
  ];
}

/** Packs a program. The folder has the name `package`, because npm's archives unpack into a folder with this name. */
function packProgram(folder: string, out: string, program: Program): string {
  packPages(folder, program.readme);
  install(folder, program);
  prune(path.join(folder, 'node_modules'));
  writeJson(path.join(folder, 'sbom.cdx.json'), billOfMaterials(folder));
  const file = `${program.name}-${version}.tgz`;
  pack(folder, path.join(out, file));
  return file;
}

/**
 * Installs the dependencies with a separate lock file. The archive contains this file, so that scanners can read it, and `npm ci` can
 * install the same packages again.
 */
function install(folder: string, { name, description, dependencies }: Program): void {
  const itself = { name, version, license, engines, bin, dependencies };
  // npm installs the dependencies from the archive, and not from a registry.
  const bundled = { bundleDependencies: true };
  const fields = { ...itself, description, allowScripts, ...bundled, ...publishFields(manifest) };
  writeJson(path.join(folder, 'package.json'), fields);
  const packages = { '': itself, ...lockedPackages(dependencies) };
  writeJson(path.join(folder, 'npm-shrinkwrap.json'), { ...lock, name, packages });
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], folder);
}

type Dependencies = Readonly<Record<string, unknown>>;
type Locked = Partial<Record<'dependencies' | 'optionalDependencies' | 'peerDependencies', Dependencies>>;

/** Returns the entries of the project's lock file that the dependencies need, in the order of that file. */
function lockedPackages(dependencies: Dependencies): Record<string, Locked> {
  const packages = lock.packages as Readonly<Record<string, Locked>>;
  const found = new Set<string>();
  const add = (from: string, name: string): void => {
    const place = `${from}node_modules/${name}`;
    if (place in packages) found.add(place);
    // A package is in the folder of the package that depends on it, or in a folder above. If the package is in none of them, it is
    // an optional dependency that is not installed.
    else if (from !== '') add(from.replace(/node_modules\/(?:@[^/]+\/)?[^/]+\/$/, ''), name);
  };
  for (const name of Object.keys(dependencies)) add('', name);
  for (const place of found) {
    const { dependencies, optionalDependencies, peerDependencies } = packages[place] ?? {};
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }))
      add(`${place}/`, name);
  }
  return Object.fromEntries(Object.entries(packages).filter(([place]) => found.has(place)));
}

function prune(nodeModules: string): void {
  // The compiler is removed, because it runs only on the platform of this machine. Only a plugin in TypeScript would need the compiler.
  const swc = path.join(nodeModules, '@swc');
  const compilers = existsSync(swc) ? readdirSync(swc).filter((each) => each.startsWith('core-')) : [];
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
  return {
    ...bill,
    serialNumber: undefined,
    metadata,
    components: [...bill.components, ...cratesOf(folder)],
  };
}

/** Returns the crates of the SDK's native core, if the archive has it. */
function cratesOf(folder: string): object[] {
  const cargoLock = path.join(folder, 'node_modules/@temporalio/core-bridge/Cargo.lock');
  if (!existsSync(cargoLock)) return [];
  const pattern = /name = "(.+)"\nversion = "(.+)"\nsource = "registry.+"\nchecksum = "(.+)"/g;
  return [...readFileSync(cargoLock, 'utf8').matchAll(pattern)].map(
    ([, crate = '', number = '', content = '']) => {
      const purl = `pkg:cargo/${crate}@${number}`;
      const hashes = [{ alg: 'SHA-256', content }];
      return { 'bom-ref': purl, type: 'library', name: crate, version: number, purl, hashes };
    },
  );
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
