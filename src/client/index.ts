/** What other TypeScript services import. */
export { BatchClient, type BatchItems, type NewBatchOptions } from './batch/batch-client';
export type { BatchDescription, BatchReport, ItemStates } from './batch/describe-batch';
export { BatchHandle, type BatchLook, type BatchOutcome, StartedBatch } from './batch/batch-handle';
export type { CheckedBatch } from './batch/items';
export type { RetryOptions } from './batch/retry-batch';
export type { BatchOptions } from './batch/start-batch';
export type { FollowUpDescription } from './description';
export { ConflictError, InvalidRequestError, NoAnswerError, NotFoundError } from './errors';
export { FollowUpClient, type FollowUpClientOptions } from './follow-up-client';
export { FollowUpHandle, StartedFollowUp } from './follow-up-handle';
export { type Limits, LimitsClient, type LimitsChange } from './limits';
export type { FollowUpFilter } from './list';
export type { ProgressOptions, ProgressReport } from './progress';
export {
  DeadlineExceededError,
  DeliveryUnknownError,
  FollowUpCancelledError,
  FollowUpEndError,
  FollowUpFailedError,
  FollowUpRejectedError,
  FollowUpTerminatedError,
  JobNotFoundError,
  type ResultOptions,
  type WaitOptions,
} from './result';
export type { FiringOptions } from './schedules/action';
export { type NewScheduleOptions, ScheduleClient } from './schedules/schedule-client';
export type { ScheduleChange, ScheduleHandle, Triggered } from './schedules/schedule-handle';
export type { NamedRequest } from './start';
export type { Limit, QueueLimits } from './task-queue-config';
export type { BatchItem, BatchSummary, ItemEnd, ItemOutcome, Tolerance } from '../core/batch';
export type { BatchProgress } from '../core/batch-workflows';
export { FollowUpError, type FollowUpErrorCode, hasCode } from '../core/errors';
export { followUpWorkflowId } from '../core/ids';
export type { AgentJob } from '../core/job';
export type { Problem } from '../core/problem';
export type { FollowUpRequest } from '../core/request';
export type {
  DeliveryDecision,
  FailureDetails,
  FailureType,
  FollowUpProgress,
  FollowUpResult,
  Receipt,
} from '../core/result';
export { type ConnectOptions, connectClient, TemporalConfigError } from '../temporal/connect';
export type { RunState } from '../temporal/existing-run';
export {
  ensureSearchAttributes,
  SearchAttributesError,
  type SearchAttributesReport,
} from '../temporal/search-attributes';
export { TemporalUnreachableError } from '../temporal/transport-errors';
