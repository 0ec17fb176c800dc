/**
 * Compiles the project and makes the release archives in `artifacts`: `npm run package`. `npm run package -- FOLDER` uses another folder.
 *
 * - `artifacts/agent-follow-up-client-VERSION.tgz`: an npm package for services that start and watch follow-ups.
 * - `artifacts/agent-follow-up-plugin-VERSION.tgz`: an npm package for teams that run follow-ups in their own worker.
 * - `artifacts/agent-follow-up-sandbox-VERSION.tgz`: an npm package with the sandbox agent service, for rehearsals and tests.
 * - `artifacts/agent-follow-up-cli-VERSION.tgz`: the CLI with its dependencies, for operators' machines.
 * - `artifacts/agent-follow-up-worker-VERSION.tgz`: the worker and the CLI with their dependencies, for Linux (glibc) on x64 or arm64.
 */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import manifest from '../../package.json';
import { publishFields } from '../lib/publish-fields';
import { copyRequiredFiles, findPackages } from './imports';
import { packPrograms } from './package-programs';
import { packPages } from './pages';
import { COMPILED, COMPILED_SANDBOX, ROOT, run, STAGING, writeJson } from './staging';

const OUT = path.resolve(process.argv[2] ?? path.join(ROOT, 'artifacts'));

const { version, license, engines } = manifest;

interface NpmPackage {
  readonly description: string;
  /** The page that becomes the README of the package. */
  readonly readme: string;
  readonly compiled: string;
  /** The entry points: `.` is the package itself, and the other paths follow its name. */
  readonly entries: { readonly '.': string; readonly [path: string]: string };
  /** The program that the name of the package runs as a command. */
  readonly program?: string;
}

/** The files for callers in other languages, which every package exports: the rules of a request, and vectors to test their own code with. */
const PUBLISHED = ['request.schema.json', 'requests.json', 'workflow-id-vectors.json'];

const WORKFLOWS = 'workflows/index';

const PACKAGES: Readonly<Record<string, NpmPackage>> = {
  'agent-follow-up-client': {
    description: 'Starts and watches durable follow-ups to agent jobs, using any Temporal server.',
    readme: 'client.md',
    compiled: COMPILED,
    entries: { '.': 'entries/client', './workflow': 'entries/workflow', './testing': 'entries/testing' },
  },
  'agent-follow-up-plugin': {
    description: 'Runs durable follow-ups to agent jobs in your own Temporal worker.',
    readme: 'plugin.md',
    compiled: COMPILED,
    entries: { '.': 'entries/plugin', './workflows': WORKFLOWS },
  },
  'agent-follow-up-sandbox': {
    description:
      'A simulated agent service with faults on request, for rehearsals and tests of follow-ups to agent jobs.',
    readme: 'sandbox.md',
    compiled: COMPILED_SANDBOX,
    entries: { '.': 'sandbox/index' },
    program: 'sandbox/main',
  },
};

/**
 * The versions of the SDK that the packages accept. All packages of the SDK are peers, because types and `instanceof` checks require
 * that the importing service has a single copy. `test/end-to-end/sdk-versions.e2e.test.ts` runs the packages with the oldest and the
 * newest version. `src/temporal/sdk-internals.ts` works without the private parts of the SDK.
 */
const SDK_RANGE = '>=1.20.0 <2';

/** The optional peer dependencies. Only workflow code needs `@temporalio/workflow`. */
const OPTIONAL_PEERS: Record<string, readonly string[]> = {
  'agent-follow-up-client': ['@temporalio/workflow'],
};

/**
 * The SDK's declarations import types of `ms` that TypeScript can't resolve. Without this dependency, a project with
 * `skipLibCheck: false` does not compile.
 */
const TYPES_FOR_THE_SDK = { '@types/ms': '^2.1.0' };

function compile(): void {
  run('npx', ['tsc', '-p', 'tsconfig.build.json', '--outDir', COMPILED, '--sourceMap', 'false']);
  run(process.execPath, [path.join(COMPILED, 'worker/bundle.js')]);
  removeLocalPaths(path.join(COMPILED, 'workflow-bundle.js'));
  run('npx', ['tsc', '-p', 'tsconfig.sandbox.json', '--outDir', COMPILED_SANDBOX, '--sourceMap', 'false']);
}

/**
 * Removes the paths of this machine from the bundle's source map, because stack traces in histories show these paths. The map also has a
 * hash that depends on the paths, which is removed as well.
 */
function removeLocalPaths(bundle: string): void {
  const marker = 'sourceMappingURL=data:application/json;charset=utf-8;base64,';
  const [code = '', map = ''] = readFileSync(bundle, 'utf8').split(marker);
  const hidden = Buffer.from(map, 'base64')
    .toString()
    .replaceAll(`${STAGING}/`, '')
    .replaceAll(`${ROOT}/`, '')
    .replace(/(?<="file":"workflow-bundle)-\w+/, '');
  writeFileSync(bundle, `${code}${marker}${Buffer.from(hidden).toString('base64')}`);
}

/** Returns the type declarations of each entry whose path follows the name of the package. */
function subPathTypes(entries: NpmPackage['entries']): Record<string, string[]> {
  const subPaths = Object.entries(entries).filter(([entry]) => entry !== '.');
  return Object.fromEntries(subPaths.map(([entry, file]) => [entry.slice(2), [`./dist/${file}.d.ts`]]));
}

function packForNpm([name, each]: [string, NpmPackage]): string {
  const { description, readme, compiled, entries, program } = each;
  const folder = path.join(STAGING, name);
  const entryFiles = [...Object.values(entries), ...(program === undefined ? [] : [program])];
  const compiledFiles = entryFiles.flatMap((entry) => [`${entry}.js`, `${entry}.d.ts`]);
  copyRequiredFiles(compiled, compiledFiles, path.join(folder, 'dist'));
  const packages = Object.entries(findPackages(path.join(folder, 'dist')));
  const isSdk = ([dependency]: [string, string]) => dependency.startsWith('@temporalio/');
  const peers = packages.filter(isSdk);
  const others = packages
    .filter((entry) => !isSdk(entry))
    .map(([other, from]) => [other, `^${from}`] as const);
  packPages(folder, readme);
  writeJson(path.join(folder, 'package.json'), {
    name,
    version,
    description,
    license,
    ...publishFields(manifest),
    engines,
    main: `./dist/${entries['.']}.js`,
    types: `./dist/${entries['.']}.d.ts`,
    // TypeScript's module resolution `node10` ignores `exports`. The option `--module commonjs` often implies it.
    typesVersions: { '*': subPathTypes(entries) },
    ...(program === undefined ? {} : { bin: `./dist/${program}.js` }),
    exports: {
      ...Object.fromEntries(
        Object.entries(entries).map(([entry, file]) => [
          entry,
          { types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` },
        ]),
      ),
      ...Object.fromEntries(PUBLISHED.map((file) => [`./${file}`, `./docs/${file}`])),
      './package.json': './package.json',
    },
    // When the workflows load, they set a mark on the global object (src/workflows/bundled.ts). Therefore, a bundler must not remove
    // their index.
    sideEffects: Object.values(entries)
      .filter((file) => file === WORKFLOWS)
      .map((file) => `./dist/${file}.js`),
    dependencies: { ...(peers.length === 0 ? {} : TYPES_FOR_THE_SDK), ...Object.fromEntries(others) },
    peerDependencies: Object.fromEntries(peers.map(([peer]) => [peer, SDK_RANGE])),
    peerDependenciesMeta: Object.fromEntries(
      (OPTIONAL_PEERS[name] ?? []).map((peer) => [peer, { optional: true }]),
    ),
  });
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', OUT], folder);
  return `${name}-${version}.tgz`;
}

rmSync(OUT, { recursive: true, force: true });
rmSync(STAGING, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
mkdirSync(STAGING, { recursive: true });
compile();
const packages = Object.entries(PACKAGES).map(packForNpm);
for (const file of [...packages, ...packPrograms(OUT)]) {
  const made = path.join(OUT, file);
  const megabytes = (statSync(made).size / 1_000_000).toFixed(1);
  process.stdout.write(`${path.relative(ROOT, made)}: ${megabytes} MB\n`);
}
rmSync(STAGING, { recursive: true });
