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
export {
  exampleBatchId,
  idProblems as scheduleIdProblems,
  NO_NAMES,
  type ScheduleItems,
} from './schedules/action';
export type { Firing, ListedSchedule, ScheduleDescription } from './schedules/description';
export { InvalidScheduleError, ScheduleExistsError, ScheduleNotFoundError } from './schedules/errors';
export { type NewScheduleSpec, ScheduleClient } from './schedules/schedule-client';
export type {
  BackfillOptions,
  Backfilled,
  Difference,
  ScheduleChange,
  ScheduleHandle,
  Triggered,
  TriggerOptions,
} from './schedules/schedule-handle';
export {
  type Overlap,
  OVERLAPS,
  type ScheduleSettings,
  type ScheduleSpec,
  settingRows,
} from './schedules/settings';
export { type Calendar, type Interval, type Timing, timingText } from './schedules/timing';
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
