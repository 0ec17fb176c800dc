/** The workflow types that a worker registers: each exported function is one. */
export { followUp } from './follow-up';
