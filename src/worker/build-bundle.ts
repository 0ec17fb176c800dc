import { DefaultLogger } from '@temporalio/worker';
import { bundleWorkflows, writeBundle } from './bundle';

/** The last step of `npm run build`: the workflow bundle that `npm start` runs. */
async function main(): Promise<void> {
  const code = await bundleWorkflows(new DefaultLogger('WARN'));
  const path = writeBundle(code);
  process.stdout.write(`${path}: ${(code.length / 1_048_576).toFixed(2)} MB\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
