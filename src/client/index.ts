/** What other TypeScript services import. */
export { batchOfRequests } from './batch/batch-of-requests';
export { BatchClient, type BatchOutcome } from './batch/batch-client';
export type { BatchEnds } from './batch/batch-ends';
export type { BatchReport, ItemStates } from './batch/batch-report';
export type { BatchDescription } from './batch/describe-batch';
export type { RetryOptions } from './batch/retry-batch';
export type { BatchOptions, StartedBatch } from './batch/start-batch';
export type { CheckedBatch } from './batch/item-collector';
export { type ConnectOptions, connectClient, TemporalConfigError, TemporalUnreachableError } from './connect';
export type { FollowUpCost } from './cost';
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
  BatchConflictError,
  BatchEndedError,
  BatchForgottenError,
  BatchNotFoundError,
  EndsUnreadableError,
  FollowUpEndedError,
  FollowUpNotFoundError,
  InvalidBatchError,
  InvalidLimitsError,
  InvalidRequestError,
  LimitsError,
  NoAnswerError,
  RequestConflictError,
  UpdateRefusedError,
} from './errors';
export { FollowUpClient, type FollowUpClientOptions } from './follow-up-client';
export { type BillableActions, costOf, type HistoryCost, NOT_IN_HISTORY, totalOf } from './history-cost';
export { checkChange as checkLimits, type LimitsChange } from './limits/change';
export type { Limits } from './limits/limits';
export type { Limit, QueueLimits } from './limits/queue-config';
export type { FollowUpFilter } from './list';
export type { ProgressReport } from './progress';
export type { ResultOptions } from './result';
export { NO_NAMES } from './schedule/definition';
export type { ListedSchedule, ScheduleDescription } from './schedule/description';
export { type Difference, settingRows } from './schedule/differences';
export { InvalidScheduleError, ScheduleExistsError, ScheduleNotFoundError } from './schedule/errors';
export type { Backfilled } from './schedule/backfill';
export type { Firing } from './schedule/firings';
export { type Overlap, OVERLAPS } from './schedule/overlap';
export { type NewScheduleOptions, type ScheduleChange, ScheduleClient } from './schedule/schedule-client';
export { exampleBatchId, MAX_SCHEDULE_ID_CHARACTERS, scheduleIdProblem } from './schedule/schedule-id';
export type { ScheduleOptions, ScheduleSettings } from './schedule/settings';
export type { Triggered } from './schedule/trigger';
export { type Timing, timingText } from './schedule/timing';
export {
  ensureSearchAttributes,
  SearchAttributesError,
  type SearchAttributesReport,
} from './search-attributes';
export { planOf, type NamedRequest, type StartedFollowUp } from './start';
export { workersPolling } from './workers';
export type { FailureDetails, FailureType, FollowUpResult, Receipt } from '../contract/result';
export type { BatchItem, BatchSummary, ItemEnd, ItemOutcome, Tolerance } from '../contract/batch';
export type { BatchProgress } from '../contract/batch-workflows';
export type { FollowUpProgress } from '../contract/progress';
export type { FollowUpRequest } from '../contract/request';
export { followUpWorkflowId } from '../contract/workflow-id';
