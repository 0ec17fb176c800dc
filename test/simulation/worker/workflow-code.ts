import { parseWorkflowCode } from '@temporalio/worker/lib/worker';
import { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { globalHandlers } from '@temporalio/worker/lib/workflow/vm-shared';

/** No timeout, because with a timeout Node starts a thread for each call into the sandbox. */
const NO_TIMEOUT = undefined as unknown as number;

/** Loads the workflow bundle into the SDK's sandbox, like a worker, but without the native core. */
export async function loadWorkflows(
  code: string,
  activities: readonly string[],
): Promise<ReusableVMWorkflowCreator> {
  // Stack traces take a tenth of the time, so the sandbox records none, and other code records short ones.
  Error.stackTraceLimit = 3;
  const bundle = parseWorkflowCode(`Error.stackTraceLimit = 0;${code}`);
  const creator = await ReusableVMWorkflowCreator.create(bundle, NO_TIMEOUT, new Set(activities));
  // The global handlers record the stack of each promise for the stack trace query, which would take most of the time.
  globalHandlers.uninstall();
  globalHandlers.promiseHookInstalled = false;
  return creator;
}
