/** The entry `agent-follow-up-client/workflow`: starts follow-ups from workflow code. */
export { followUpWorkflowId } from '../core/ids';
export type { FollowUpRequest } from '../core/request';
export {
  FAILURE_TYPES,
  type FailureDetails,
  type FailureType,
  type FollowUpResult,
  type Receipt,
} from '../core/result';
export {
  type ChildFollowUp,
  type ChildFollowUpOptions,
  executeFollowUp,
  startFollowUp,
} from '../workflows/child';
