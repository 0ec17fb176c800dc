/** The entry `agent-follow-up-client`: the client for services that start and watch follow-ups. */
export type { BatchWatchUpdate } from '../client/batch/describe';
export { BatchClient, BatchHandle, type StartedBatch } from '../client/batch/batch-client';
export {
  type BatchItems,
  checkBatch,
  type CheckedBatch,
  type StartBatchOptions,
  type RunOptions,
} from '../client/batch/check';
export type { RetryOptions } from '../client/batch/start';
export type { CallOptions } from '../client/call-runner';
export type { FollowUpDescription } from '../client/description';
export {
  ConflictError,
  DeadlineExceededError,
  DeliveryUnknownError,
  FollowUpCancelledError,
  FollowUpRejectedError,
  FollowUpTerminatedError,
  InvalidRequestError,
  JobNotFoundError,
  WaitTimeoutError,
  StartUnconfirmedError,
  NotFoundError,
} from '../client/errors';
export type { FollowUpFilter } from '../client/filter';
export * from '../client/interfaces';
export * from '../client/follow-up-client';
export * from '../client/follow-up-handle';
export type { ProgressReport } from '../client/progress';
export type { RetryAllOptions, RetryResult } from '../client/retry-all';
export {
  checkSchedule,
  type CreateScheduleOptions,
  type UpdateScheduleOptions,
  ScheduleClient,
  type ScheduleHandle,
} from '../client/schedules';
export { ensureSearchAttributes } from '../client/set-up';
export {
  checkedWorkflowId as followUpWorkflowId,
  type NamedRequest,
  type StartOptions,
} from '../client/start';
export type { BatchItem, MaxFailures } from '../batch/items';
export type { BatchProgress, BatchSummary, BatchView, BatchItemResult } from '../batch/progress';
export type { Outcome } from '../contract/outcome';
export { FollowUpError, type FollowUpErrorCode, hasCode } from '../contract/follow-up-error';
export type { AgentJob } from '../contract/job';
export type { Problem } from '../contract/checks';
export type { FollowUpRequest } from '../contract/request';
export type {
  DeliveryDecision,
  Evidence,
  FailureDetails,
  FailureType,
  FollowUpProgress,
  FollowUpResult,
  Phase,
  Receipt,
} from '../contract/result';
export { type ConnectOptions, connectClient } from '../client/connect';
export type { RunState } from '../temporal/workflow-executions';
export { SearchAttributesError, TemporalUnreachableError } from '../temporal/server-error';
