/** The entry `agent-follow-up-client/workflow`: functions that start follow-ups from workflow code. */
export { followUpWorkflowId } from '../contract/ids';
export type { FollowUpRequest } from '../contract/request';
export {
  FAILURE_TYPES,
  type FailureDetails,
  type FailureType,
  type FollowUpResult,
  type Receipt,
} from '../contract/result';
export {
  type ChildFollowUp,
  type ChildFollowUpOptions,
  executeFollowUp,
  startFollowUp,
} from '../workflows/child';
