/** What other TypeScript services import. */
export type { BatchLook } from './batch/describe';
export { BatchClient, BatchHandle, type StartedBatch } from './batch/batch-client';
export {
  type BatchItems,
  checkBatch,
  type CheckedBatch,
  type NewBatchOptions,
  type RunOptions,
} from './batch/check';
export type { RetryOptions } from './batch/start';
export type { CallOptions } from './call';
export type { FollowUpDescription, FollowUpFilter } from './description';
export {
  ConflictError,
  DeadlineExceededError,
  DeliveryUnknownError,
  FollowUpCancelledError,
  FollowUpRejectedError,
  FollowUpTerminatedError,
  InvalidRequestError,
  JobNotFoundError,
  NoAnswerError,
  NotConfirmedError,
  NotFoundError,
} from './errors';
export * from './interfaces';
export * from './follow-up-client';
export * from './follow-up-handle';
export * from './limits';
export type { ProgressReport } from './progress';
export {
  checkSchedule,
  type NewScheduleOptions,
  type ScheduleChange,
  ScheduleClient,
  type ScheduleHandle,
  type Triggered,
} from './schedules';
export type { NamedRequest, StartOptions } from './start';
export type { BatchItem, Tolerance } from '../batch/items';
export type { BatchProgress, BatchSummary, BatchView, ItemEnd } from '../batch/progress';
export type { Outcome } from '../core/end';
export { FollowUpError, type FollowUpErrorCode, hasCode } from '../core/errors';
export { followUpWorkflowId } from '../core/ids';
export type { AgentJob } from '../core/job';
export type { Problem } from '../core/checks';
export type { FollowUpRequest } from '../core/request';
export type {
  DeliveryDecision,
  Evidence,
  FailureDetails,
  FailureType,
  FollowUpProgress,
  FollowUpResult,
  Phase,
  Receipt,
} from '../core/result';
export { type ConnectOptions, connectClient } from '../temporal/connect';
export type { RunState } from '../temporal/existing-run';
export { ensureSearchAttributes } from '../temporal/search-attributes';
export { SearchAttributesError, TemporalUnreachableError } from '../temporal/server-error';
