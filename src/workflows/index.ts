/** The workflow types that a worker registers: each exported function is one. */
export { followUp } from './follow-up/follow-up';
export { followUpBatch, followUpBatchItems } from './batch/batch';
export { followUpNotice } from './notice';
