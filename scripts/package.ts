/**
 * Makes the artefacts that other services need, from a compilation of its own: `npm run package`.
 *
 * - `artifacts/agent-follow-up-client-VERSION.tgz`: an npm package for services that start and watch follow-ups.
 * - `artifacts/agent-follow-up-plugin-VERSION.tgz`: an npm package for teams that run follow-ups in a worker of their own.
 * - `artifacts/agent-follow-up-worker-VERSION.tgz`: what production runs, with its dependencies; Linux (glibc), x64 or arm64.
 */
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
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

/** The npm packages: what is imported from each by its name and by further paths, and the page that is its README. */
const PACKAGES = {
  'agent-follow-up-client': {
    description: 'Starts and watches durable follow-ups to agent jobs, by any Temporal server.',
    readme: 'client.md',
    entries: { '.': 'client/index', './workflow': 'workflows/child', './testing': 'client/testing' },
  },
  'agent-follow-up-plugin': {
    description: 'Runs durable follow-ups to agent jobs in a Temporal worker of your own.',
    readme: 'plugin.md',
    entries: { '.': 'worker/plugin', './workflows': 'workflows/index' },
  },
} as const;

/**
 * Packages of the SDK are peers: they share types and `instanceof` checks with the importing service's own code, so there
 * must be one copy. The minor version is fixed, because `src/temporal/sdk-internals.ts` uses functions of the SDK that are
 * not public. Only workflow code needs the first one.
 */
const OPTIONAL_PEERS: Record<string, readonly string[]> = {
  'agent-follow-up-client': ['@temporalio/workflow'],
};

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
  run(process.execPath, [path.join(COMPILED, 'worker/bundle.js')]);
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

/** The packages that compiled files import, with the versions of this project. */
function packagesOf(folder: string): Record<string, string> {
  const found = new Set<string>();
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    const code = readFileSync(path.join(folder, file), 'utf8');
    for (const [, name = ''] of code.matchAll(/(?:require\(|from |import\()["']([^."'][^"']*)["']/g)) {
      found.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
    }
  }
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => found.has(name)));
}

function packForNpm(name: keyof typeof PACKAGES): string {
  const { description, readme, entries } = PACKAGES[name];
  const folder = path.join(STAGING, name);
  for (const entry of Object.values(entries)) {
    for (const file of [...neededBy(`${entry}.js`), ...neededBy(`${entry}.d.ts`)]) {
      cpSync(path.join(COMPILED, file), path.join(folder, 'dist', file));
    }
  }
  const packages = Object.entries(packagesOf(path.join(folder, 'dist')));
  const isSdk = ([each]: [string, string]) => each.startsWith('@temporalio/');
  for (const file of DOCUMENTS) cpSync(path.join(ROOT, file), path.join(folder, file));
  for (const file of PUBLISHED) cpSync(path.join(ROOT, 'docs', file), path.join(folder, file));
  cpSync(path.join(ROOT, 'docs', readme), path.join(folder, 'README.md'));
  writeManifest(folder, {
    name,
    version,
    description,
    license,
    engines,
    main: `./dist/${entries['.']}.js`,
    types: `./dist/${entries['.']}.d.ts`,
    exports: {
      ...Object.fromEntries(
        Object.entries(entries).map(([entry, file]) => [
          entry,
          { types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` },
        ]),
      ),
      ...Object.fromEntries([...PUBLISHED, 'package.json'].map((file) => [`./${file}`, `./${file}`])),
    },
    sideEffects: false,
    dependencies: {
      ...TYPES_FOR_THE_SDK,
      ...Object.fromEntries(
        packages.filter((each) => !isSdk(each)).map(([each, from]) => [each, `^${from}`]),
      ),
    },
    peerDependencies: Object.fromEntries(packages.filter(isSdk).map(([each, from]) => [each, `~${from}`])),
    peerDependenciesMeta: Object.fromEntries(
      (OPTIONAL_PEERS[name] ?? []).map((each) => [each, { optional: true }]),
    ),
  });
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', OUT], folder);
  return `${name}-${version}.tgz`;
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
  cpSync(path.join(ROOT, 'examples/encryption'), path.join(folder, 'examples/encryption'), {
    recursive: true,
  });
  const docs = path.join(ROOT, 'docs');
  const names = readdirSync(docs).filter((name) => name.endsWith('.md') || PUBLISHED.includes(name));
  for (const name of names) cpSync(path.join(docs, name), path.join(folder, 'docs', name));
  const readme = readFileSync(path.join(docs, 'deployment.md'), 'utf8');
  writeFileSync(path.join(folder, 'README.md'), readme.replace(/\]\(([\w-]+\.md)/g, '](docs/$1'));
  cpSync(path.join(ROOT, 'SECURITY.md'), path.join(folder, 'SECURITY.md'));
  const pages = ['README.md', 'SECURITY.md', ...names.map((name) => path.join('docs', name))];
  for (const page of pages.filter((name) => name.endsWith('.md'))) adapt(path.join(folder, page));
}

/** A page as it holds where npm has no scripts: with commands that run there, and without links to what is not there. */
function adapt(page: string): void {
  const text = readFileSync(page, 'utf8')
    .replaceAll(/npm run (?:-s )?starter -- /g, 'node dist/starter.js ')
    .replaceAll(/(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)[^)]*\)/g, (link, words: string, target: string) =>
      existsSync(path.join(path.dirname(page), target)) ? link : words,
    );
  writeFileSync(page, text);
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
const packages = [packForNpm('agent-follow-up-client'), packForNpm('agent-follow-up-plugin')];
for (const file of [...packages, packWorker()]) {
  const megabytes = (statSync(path.join(OUT, file)).size / 1_000_000).toFixed(1);
  process.stdout.write(`artifacts/${file}: ${megabytes} MB\n`);
}
rmSync(STAGING, { recursive: true });
