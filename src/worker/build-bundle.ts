import { writeFileSync } from 'node:fs';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { BUNDLE, WORKFLOWS } from './bundle';

/** The last step of `npm run build`: the workflow bundle that `npm start` runs. */
async function main(): Promise<void> {
  const logger = new DefaultLogger('WARN');
  const { code } = await bundleWorkflowCode({ workflowsPath: WORKFLOWS, logger });
  writeFileSync(BUNDLE, code);
  process.stdout.write(`${BUNDLE}: ${(code.length / 1_048_576).toFixed(2)} MB\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
