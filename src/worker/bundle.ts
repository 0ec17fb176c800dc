import { existsSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import type { WorkerOptions } from '@temporalio/worker';

/** `dist` when compiled, `src` when run from source. */
const ROOT = resolve(__dirname, '..');
const COMPILED = extname(__filename) === '.js';

/** The entry point of the workflow code. */
export const WORKFLOWS = join(ROOT, 'workflows', COMPILED ? 'index.js' : 'index.ts');

/** Where `npm run build` puts the prebuilt bundle. */
export const BUNDLE = join(ROOT, 'workflow-bundle.js');

/** Thrown when the compiled worker has no bundle. */
export class BundleError extends Error {
  override readonly name = 'BundleError';
}

/**
 * The workflow code of a worker: the prebuilt bundle if compiled; if run from source, the sources, which the SDK then
 * bundles itself (some three seconds).
 *
 * @throws BundleError when the bundle is missing
 */
export function workflowCode(): Pick<WorkerOptions, 'workflowsPath' | 'workflowBundle'> {
  if (!COMPILED) return { workflowsPath: WORKFLOWS };
  if (!existsSync(BUNDLE)) {
    throw new BundleError(`there is no workflow bundle at ${BUNDLE}: run "npm run build"`);
  }
  return { workflowBundle: { codePath: BUNDLE } };
}
