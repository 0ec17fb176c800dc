/** What other TypeScript services import. */
export { type ConnectOptions, connectClient, TemporalConfigError, TemporalUnreachableError } from './connect';
export type { FollowUpDescription, FollowUpState } from './description';
export {
  FollowUpCancelledError,
  FollowUpEnd,
  FollowUpError,
  FollowUpTerminatedError,
  FollowUpTimedOutError,
  UnexpectedFailureError,
} from './ends';
export {
  FollowUpEndedError,
  FollowUpNotFoundError,
  InvalidRequestError,
  NoAnswerError,
  RequestConflictError,
  UpdateRefusedError,
} from './errors';
export { FollowUpClient, type FollowUpClientOptions } from './follow-up-client';
export type { FollowUpFilter } from './list';
export type { ProgressReport } from './progress';
export type { ResultOptions } from './result';
export {
  ensureSearchAttributes,
  SearchAttributesError,
  type SearchAttributesReport,
} from './search-attributes';
export { planOf, type NamedRequest, type StartedFollowUp } from './start';
export { workersPolling } from './workers';
export type { FailureDetails, FailureType, FollowUpResult, Receipt } from '../contract/result';
export type { FollowUpProgress } from '../contract/progress';
export type { FollowUpRequest } from '../contract/request';
export { followUpWorkflowId } from '../contract/workflow-id';
