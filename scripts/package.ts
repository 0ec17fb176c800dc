/**
 * Makes the two artefacts that other services need, from a compilation of its own: `npm run package`.
 *
 * - `artifacts/agent-follow-up-client-VERSION.tgz`: an npm package for services that start and watch follow-ups.
 * - `artifacts/agent-follow-up-worker-VERSION.tgz`: what production runs, with its dependencies; Linux (glibc), x64 or arm64.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import manifest from '../package.json';

const ROOT = path.resolve(__dirname, '..');
const OUT = path.join(ROOT, 'artifacts');
const STAGING = path.join(OUT, 'staging');
const COMPILED = path.join(STAGING, 'dist');

const { version, license, engines, dependencies } = manifest;

/** The documents that both artefacts carry. */
const DOCUMENTS = ['LICENSE', 'CHANGELOG.md'];

/** What callers in any language need beside the client: the request's rules, and what to test their own code with. */
const PUBLISHED = ['request.schema.json', 'requests.json', 'workflow-id-vectors.json'];

/**
 * Dependencies of the client that the importing service has itself. They share types and `instanceof` checks with the
 * service's own code, so that there must be one copy. The lowest version is the one that the tests run with: the client uses
 * a few functions of the SDK that are not public.
 */
const PEERS = ['@temporalio/client', '@temporalio/common', '@temporalio/envconfig'] as const;

/** What only the plugin for a worker needs: a service that starts follow-ups does without them. */
const PLUGIN_PEERS = [
  '@temporalio/activity',
  '@temporalio/worker',
  '@temporalio/workflow',
  'undici',
  'zod',
] as const;

/** What is imported from the package: by its name, and by these paths. */
const ENTRIES = {
  '.': 'client/index',
  './worker': 'worker/plugin',
  './workflows': 'workflows/index',
} as const;

/**
 * The SDK's declarations import types of `ms` from a version that TypeScript can't resolve them in, so that a consumer with
 * `skipLibCheck: false` could not compile (SDK 1.24). With these in place it can.
 */
const TYPES_FOR_THE_SDK = { '@types/ms': '^2.1.0' };

/** Parts of the worker's dependencies that production never loads. They are 110 MB of 190. */
const UNUSED = [
  // Native code for other platforms, and the sources that it was made of.
  ...['aarch64-apple-darwin', 'x86_64-apple-darwin', 'x86_64-pc-windows-msvc'].map(
    (platform) => `@temporalio/core-bridge/releases/${platform}`,
  ),
  ...['sdk-core', 'src', 'bridge-macros'].map((folder) => `@temporalio/core-bridge/${folder}`),
  '.bin',
];

function run(command: string, args: readonly string[], cwd = ROOT): void {
  execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}

function writeManifest(folder: string, content: object): void {
  writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(content, null, 2)}\n`);
}

function compile(): void {
  run('npx', ['tsc', '-p', 'tsconfig.build.json', '--outDir', COMPILED, '--sourceMap', 'false']);
  run(process.execPath, [path.join(COMPILED, 'worker/build-bundle.js')]);
  hideMachine(path.join(COMPILED, 'workflow-bundle.js'));
}

/** The stack traces in histories show the paths of the bundle's source map: those of the artefact, not of this machine. */
function hideMachine(bundle: string): void {
  const marker = 'sourceMappingURL=data:application/json;charset=utf-8;base64,';
  const [code = '', map = ''] = readFileSync(bundle, 'utf8').split(marker);
  const parsed = JSON.parse(Buffer.from(map, 'base64').toString()) as { sources: string[] };
  parsed.sources = parsed.sources.map((source) => source.replace(`${STAGING}/`, '').replace(`${ROOT}/`, ''));
  writeFileSync(bundle, `${code}${marker}${Buffer.from(JSON.stringify(parsed)).toString('base64')}`);
}

/** The compiled files that a file needs: what it imports by a relative path, and so on, code and types alike. */
function neededBy(entry: string): string[] {
  const found = new Set<string>([entry]);
  for (const file of found) {
    const code = readFileSync(path.join(COMPILED, file), 'utf8');
    for (const [, name = ''] of code.matchAll(/(?:require\(|from |import\()["'](\.[^"']*)["']/g)) {
      found.add(resolved(path.join(path.dirname(file), name), file.endsWith('.d.ts') ? '.d.ts' : '.js'));
    }
  }
  return [...found];
}

function resolved(name: string, extension: '.js' | '.d.ts'): string {
  const isFolder = statSync(path.join(COMPILED, name), { throwIfNoEntry: false })?.isDirectory() ?? false;
  const file = `${name}${extension}`;
  const exists = statSync(path.join(COMPILED, file), { throwIfNoEntry: false }) !== undefined;
  return isFolder && !exists ? path.join(name, `index${extension}`) : file;
}

function packClient(): string {
  const folder = path.join(STAGING, 'client');
  mkdirSync(folder);
  for (const entry of Object.values(ENTRIES)) {
    for (const file of [...neededBy(`${entry}.js`), ...neededBy(`${entry}.d.ts`)]) {
      cpSync(path.join(COMPILED, file), path.join(folder, 'dist', file));
    }
  }
  for (const file of DOCUMENTS) cpSync(path.join(ROOT, file), path.join(folder, file));
  for (const file of PUBLISHED) cpSync(path.join(ROOT, 'docs', file), path.join(folder, file));
  cpSync(path.join(ROOT, 'docs/client.md'), path.join(folder, 'README.md'));
  writeManifest(folder, {
    name: 'agent-follow-up-client',
    version,
    description: 'Starts and watches durable follow-ups to agent jobs, by any Temporal server.',
    license,
    engines,
    main: './dist/client/index.js',
    types: './dist/client/index.d.ts',
    exports: {
      ...Object.fromEntries(
        Object.entries(ENTRIES).map(([name, entry]) => [
          name,
          { types: `./dist/${entry}.d.ts`, default: `./dist/${entry}.js` },
        ]),
      ),
      ...Object.fromEntries([...PUBLISHED, 'package.json'].map((file) => [`./${file}`, `./${file}`])),
    },
    sideEffects: false,
    dependencies: TYPES_FOR_THE_SDK,
    peerDependencies: Object.fromEntries(
      [...PEERS, ...PLUGIN_PEERS].map((name) => [name, `^${dependencies[name]}`]),
    ),
    peerDependenciesMeta: Object.fromEntries(PLUGIN_PEERS.map((name) => [name, { optional: true }])),
  });
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', OUT], folder);
  return `agent-follow-up-client-${version}.tgz`;
}

function packWorker(): string {
  // Both archives unpack into a folder `package`, as those of npm do.
  const folder = path.join(STAGING, 'package');
  cpSync(COMPILED, path.join(folder, 'dist'), {
    recursive: true,
    filter: (file) => !file.endsWith('.d.ts'),
  });
  for (const file of [...DOCUMENTS, 'package.json', 'package-lock.json']) {
    cpSync(path.join(ROOT, file), path.join(folder, file));
  }
  packDocuments(folder);
  run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], folder);
  prune(path.join(folder, 'node_modules'));
  rmSync(path.join(folder, 'package-lock.json'));
  const { name, description, bin } = manifest;
  writeManifest(folder, {
    name: `${name}-worker`,
    version,
    description,
    license,
    engines,
    bin,
    dependencies,
  });
  const file = `agent-follow-up-worker-${version}.tgz`;
  run('tar', ['-czf', path.join(OUT, file), '-C', STAGING, 'package']);
  return file;
}

/** The pages that the programs, and each other, point to. */
function packDocuments(folder: string): void {
  const pages = readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  for (const page of pages) cpSync(path.join(ROOT, 'docs', page), path.join(folder, 'docs', page));
  cpSync(path.join(ROOT, 'SECURITY.md'), path.join(folder, 'SECURITY.md'));
  cpSync(path.join(ROOT, 'examples/encryption'), path.join(folder, 'examples/encryption'), {
    recursive: true,
  });
  const readme = readFileSync(path.join(ROOT, 'docs/deployment.md'), 'utf8');
  writeFileSync(path.join(folder, 'README.md'), readme.replace(/\]\(([\w-]+\.md)/g, '](docs/$1'));
}

function prune(nodeModules: string): void {
  // The compiler of the machine that packs is for bundling, which is done; it would tie the artefact to that machine.
  const compilers = readdirSync(path.join(nodeModules, '@swc')).filter((name) => name.startsWith('core-'));
  for (const name of [...UNUSED, ...compilers.map((compiler) => `@swc/${compiler}`)]) {
    rmSync(path.join(nodeModules, name), { recursive: true, force: true });
  }
  for (const file of readdirSync(nodeModules, { recursive: true, encoding: 'utf8' })) {
    if (/\.(d\.[cm]?ts|map)$/.test(file)) rmSync(path.join(nodeModules, file));
  }
}

rmSync(OUT, { recursive: true, force: true });
mkdirSync(STAGING, { recursive: true });
compile();
for (const file of [packClient(), packWorker()]) {
  const megabytes = (statSync(path.join(OUT, file)).size / 1_000_000).toFixed(1);
  process.stdout.write(`artifacts/${file}: ${megabytes} MB\n`);
}
rmSync(STAGING, { recursive: true });
