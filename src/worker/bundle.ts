import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkerOptions } from '@temporalio/worker';
import { FollowUpError } from '../contract/follow-up-error';

const ROOT = resolve(__dirname, '..');

const BUNDLE = join(ROOT, 'workflow-bundle.js');

/** The prebuilt bundle if compiled; from source nothing, as the SDK bundles what the plugin adds (3 s). @throws FollowUpError */
export function workflowCode(): Pick<WorkerOptions, 'workflowBundle'> {
  if (extname(__filename) !== '.js') return {};
  if (!existsSync(BUNDLE)) {
    throw new FollowUpError(
      'NAMESPACE_NOT_SET_UP',
      `there is no workflow bundle at ${BUNDLE}: run "npm run build"`,
    );
  }
  return { workflowBundle: { codePath: BUNDLE } };
}

/** The folders of pure modules that workflows share. */
const PURE_FOLDERS = ['contract', 'follow-up', 'batch'];

/**
 * Bundles the workflows. The pure modules keep no state, and are evaluated once for all workflows: each workflow then needs a third
 * of the heap, and starts in half the time (`npm run bench:in-flight` shows the memory).
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
  process.stdout.write(`${BUNDLE}: ${(code.length / 1_048_576).toFixed(2)} MB\n`);
}

// Node ends with an error, and shows it, when this fails.
if (require.main === module) void build();
