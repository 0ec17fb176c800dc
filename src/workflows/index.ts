import { markWorkflowsAsBundled } from './bundled';

/* A worker registers the functions that this file exports. The name of each function is a workflow type. */
export { followUp } from './follow-up/follow-up';
export { followUpBatch, followUpBatchItems } from './batch/batch';
export { followUpNotification } from './notification';

/** The plugin checks that a prebuilt bundle contains this name, because a prebuilt bundle may not have the workflows. */
export const agentFollowUpWorkflows = true;

markWorkflowsAsBundled();
