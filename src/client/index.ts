/** What other TypeScript services import. */
export { batchOfRequests } from './batch/items';
export { BatchClient, type BatchOutcome } from './batch/batch-client';
export type { BatchEnds } from './batch/batch-ends';
export type { BatchReport, ItemStates } from './batch/describe-batch';
export type { BatchDescription } from './batch/describe-batch';
export type { RetryOptions } from './batch/retry-batch';
export type { BatchOptions, StartedBatch } from './batch/start-batch';
export type { CheckedBatch } from './batch/items';
export {
  type ConnectOptions,
  connectClient,
  TemporalConfigError,
  TemporalUnreachableError,
} from '../temporal/connect';
export type { FollowUpCost } from './cost';
export type { FollowUpDescription } from './description';
export type { RunState } from '../temporal/existing-run';
export {
  FollowUpCancelledError,
  FollowUpEnd,
  FollowUpError,
  FollowUpTerminatedError,
  FollowUpTimedOutError,
  UnexpectedFailureError,
} from './result';
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
export { type BillableActions, costOf, type HistoryCost, NOT_IN_HISTORY, totalOf } from './cost';
export { checkChange as checkLimits, type LimitsChange } from './limits';
export type { Limits } from './limits';
export type { Limit, QueueLimits } from './task-queue-config';
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
} from '../temporal/search-attributes';
export { planOf, type NamedRequest, type StartedFollowUp } from './start';
export { workersPolling } from '../temporal/grpc-status';
export type { FailureDetails, FailureType, FollowUpResult, Receipt } from '../core/result';
export type { BatchItem, BatchSummary, ItemEnd, ItemOutcome, Tolerance } from '../core/batch';
export type { BatchProgress } from '../core/batch-workflows';
export type { FollowUpProgress } from '../core/result';
export type { FollowUpRequest } from '../core/request';
export { followUpWorkflowId } from '../core/ids';
