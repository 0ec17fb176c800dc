import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkerOptions } from '@temporalio/worker';
import { FollowUpError } from '../contract/follow-up-error';

const ROOT = resolve(__dirname, '..');

const BUNDLE = join(ROOT, 'workflow-bundle.js');

/**
 * Returns the prebuilt bundle if this code is compiled. From source, returns no bundle, and the SDK bundles the workflows of the plugin
 * in about 3 s.
 *
 * @throws FollowUpError if the bundle does not exist
 */
export function workflowCode(): Pick<WorkerOptions, 'workflowBundle'> {
  if (extname(__filename) !== '.js') return {};
  if (!existsSync(BUNDLE)) {
    throw new FollowUpError(
      'INVALID_CONFIGURATION',
      `the workflow bundle ${BUNDLE} does not exist; run "npm run build"`,
    );
  }
  return { workflowBundle: { codePath: BUNDLE } };
}

/** The folders of the pure modules, which workflows share. */
const PURE_FOLDERS = ['contract', 'follow-up', 'batch'];

/**
 * Bundles the workflows. The pure modules have no state, so they are evaluated once for all workflows. Each workflow then needs a third
 * of the heap, and starts in half the time. `npm run bench:in-flight` measures the memory.
 */
export async function bundleCode(): Promise<string> {
  const modules = PURE_FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => /(?<!\.d)\.[jt]s$/.test(file))
      .map((file) => join(ROOT, folder, file)),
  );
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(ROOT, 'workflows'),
    logger: new DefaultLogger('WARN'),
    preloadModules: modules,
  });
  return code;
}

async function build(): Promise<void> {
  const code = await bundleCode();
  writeFileSync(BUNDLE, code);
  process.stdout.write(`${BUNDLE}: ${(code.length / 1_048_576).toFixed(2)} MiB\n`);
}

// If the build fails, Node prints the error and exits with an error code.
if (require.main === module) void build();
