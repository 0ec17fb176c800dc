/** The workflow types that a worker registers: each exported function is one. */
export { followUp } from './follow-up/follow-up';
export { followUpBatch } from './batch/batch';
export { followUpBatchPage } from './batch/page';
