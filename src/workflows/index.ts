/** The workflow types that a worker registers: each exported function is one. */
export { followUp } from './follow-up/follow-up';
export { followUpBatch, followUpBatchItems } from './batch/batch';
export { followUpNotification } from './notification';

/** The plugin searches a prebuilt bundle for this name, because such a bundle may not have the workflows. */
export const agentFollowUpWorkflows = true;
