import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { bundleWorkflowCode, type Logger, type WorkerOptions } from '@temporalio/worker';
import sdk from '@temporalio/worker/package.json';

/** `dist` when compiled, `src` when run from source. */
const ROOT = resolve(__dirname, '..');
const COMPILED = extname(__filename) === '.js';

/** The folders that a bundle is made of. Everything in them is deterministic, and no other file of the project may get in. */
const BUNDLED_FOLDERS = ['core', 'workflows'];

const BUNDLE = join(ROOT, 'workflow-bundle.js');
const MANIFEST = join(ROOT, 'workflow-bundle.json');

/** What a bundle was made of. */
interface Manifest {
  /** A worker runs only bundles of its own SDK version. */
  readonly sdk: string;
  /** SHA-256 of every file that may go into it. */
  readonly sources: string;
}

/** Thrown when the compiled worker has no matching bundle. */
export class BundleError extends Error {
  override readonly name = 'BundleError';
}

/**
 * The workflow code of a worker: the prebuilt bundle if compiled; if run from source, the sources, which the SDK then
 * bundles itself (some three seconds).
 *
 * @throws BundleError when the bundle is missing, or was not built from the compiled files beside it
 */
export function workflowCode(): Pick<WorkerOptions, 'workflowsPath' | 'workflowBundle'> {
  if (!COMPILED) return { workflowsPath: join(ROOT, 'workflows', 'index.ts') };
  if (!existsSync(BUNDLE) || !existsSync(MANIFEST)) {
    throw new BundleError(`there is no workflow bundle at ${BUNDLE}: run "npm run build"`);
  }
  const built = JSON.parse(readFileSync(MANIFEST, 'utf8')) as Manifest;
  const now = manifest();
  if (built.sdk !== now.sdk) {
    throw new BundleError(
      `the workflow bundle was built by version ${built.sdk} of the Temporal SDK, and ${now.sdk} is installed: run "npm run build"`,
    );
  }
  if (built.sources !== now.sources) {
    throw new BundleError(
      'the workflow bundle is older than the compiled workflows beside it: run "npm run build"',
    );
  }
  return { workflowBundle: { codePath: BUNDLE } };
}

/**
 * Bundles the workflows.
 *
 * @throws BundleError when the bundle has a module that it must not have; the message names it
 */
export async function bundleWorkflows(logger: Logger): Promise<string> {
  const workflowsPath = join(ROOT, 'workflows', COMPILED ? 'index.js' : 'index.ts');
  const { code } = await bundleWorkflowCode({ workflowsPath, logger });
  const misplaced = misplacedModules(code);
  if (misplaced.length > 0) {
    throw new BundleError(
      `the workflow bundle must not hold ${misplaced.join(', ')}: only files of core and workflows, and the SDK`,
    );
  }
  return code;
}

/** Writes the bundle and what it was made of beside the compiled files. */
export function writeBundle(code: string): string {
  writeFileSync(BUNDLE, code);
  writeFileSync(MANIFEST, `${JSON.stringify(manifest())}\n`);
  return BUNDLE;
}

function manifest(): Manifest {
  const hash = createHash('sha256');
  for (const folder of BUNDLED_FOLDERS) {
    const files = readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' });
    for (const file of files.filter((name) => name.endsWith('.js')).sort()) {
      hash
        .update(`${folder}/${file}\0`)
        .update(readFileSync(join(ROOT, folder, file)))
        .update('\0');
    }
  }
  return { sdk: sdk.version, sources: hash.digest('hex') };
}

/** What a workflow bundle may hold besides the project's own files: the SDK's workflow side and what that needs. */
const ALLOWED_PACKAGES = ['@temporalio/workflow', '@temporalio/common', 'nexus-rpc', 'ms', 'long'];

/** The folders of the project whose files are deterministic. The source map names a compiled file by its source. */
const OWN_FILE = new RegExp(`/(src|dist)/(${BUNDLED_FOLDERS.join('|')})/`);

/**
 * The modules in a bundle that must not be there: a package such as zod costs 0.58 MB in every cached workflow, and one
 * such as undici can't run there at all. Webpack's inline source map lists the modules.
 *
 * @returns package names and paths, sorted; empty when the bundle is lean
 */
export function misplacedModules(code: string): string[] {
  const misplaced = new Set<string>();
  for (const module of bundledModules(code)) {
    const name = packageOf(module);
    if (name !== undefined) {
      if (!ALLOWED_PACKAGES.includes(name)) misplaced.add(name);
    } else if (!module.startsWith('webpack/') && !OWN_FILE.test(module)) {
      misplaced.add(module);
    }
  }
  return [...misplaced].sort();
}

/** The paths of everything that went into a bundle. */
function bundledModules(code: string): readonly string[] {
  const marker = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';
  const start = code.lastIndexOf(marker);
  if (start < 0) throw new Error('the workflow bundle has no source map, so its modules are not known');
  const map = JSON.parse(Buffer.from(code.slice(start + marker.length), 'base64').toString()) as {
    sources: string[];
  };
  return map.sources;
}

function packageOf(module: string): string | undefined {
  return /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1];
}
