import { existsSync, writeFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger, type WorkerOptions } from '@temporalio/worker';
import { FollowUpError } from '../core/errors';

const ROOT = resolve(__dirname, '..');

const BUNDLE = join(ROOT, 'workflow-bundle.js');

/** The prebuilt bundle if compiled; from source nothing, as the SDK bundles what the plugin adds (3 s). @throws FollowUpError */
export function workflowCode(): Pick<WorkerOptions, 'workflowBundle'> {
  if (extname(__filename) !== '.js') return {};
  if (!existsSync(BUNDLE)) {
    throw new FollowUpError('NOT_SET_UP', `there is no workflow bundle at ${BUNDLE}: run "npm run build"`);
  }
  return { workflowBundle: { codePath: BUNDLE } };
}

async function build(): Promise<void> {
  const logger = new DefaultLogger('WARN');
  const { code } = await bundleWorkflowCode({ workflowsPath: join(ROOT, 'workflows'), logger });
  writeFileSync(BUNDLE, code);
  process.stdout.write(`${BUNDLE}: ${(code.length / 1_048_576).toFixed(2)} MB\n`);
}

// Node ends with an error, and shows it, when this fails.
if (require.main === module) void build();
