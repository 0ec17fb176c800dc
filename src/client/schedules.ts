import {
  type Backfill,
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  type ScheduleHandle as TemporalScheduleHandle,
  ScheduleNotFoundError,
  type ScheduleOptions,
  type ScheduleOverlapPolicy,
} from '@temporalio/client';
import { ValueError } from '@temporalio/common';
import { BATCH_PRIORITY, batchIdProblem, batchTitle, MAX_INPUT_BYTES } from '../batch/items';
import type { BatchInput } from '../batch/memo';
import type { Problem } from '../contract/checks';
import { batchWorkflowId } from '../contract/ids';
import { BATCH_WORKFLOW } from '../contract/names';
import type { FollowUpRequest } from '../contract/request';
import { jsonByteLength, markdownCode } from '../contract/text';
import { findGrpcError, hasGrpcStatus } from '../temporal/grpc-status';
import {
  type BatchItems,
  checkBatch,
  type DuplicateOptions,
  RUN_CHECKS,
  type RunOptions,
} from './batch/check';
import { CALL_CHECKS, type CallOptions, type CallRunner } from './call-runner';
import {
  invalidFieldError,
  NotFoundError,
  notFoundError,
  throwIfProblems,
  scheduleConflictError,
  scheduleUpdateConflictError,
} from './errors';
import { booleanProblem, checkName, checkOptions, type OptionChecks, objectProblem } from './options';

/** The times at which a schedule starts batches, and the options of these batches. */
export type CreateScheduleOptions = Pick<ScheduleOptions, 'spec' | 'policies' | 'state'> &
  RunOptions &
  DuplicateOptions;

const CREATE_CHECKS: OptionChecks<CreateScheduleOptions> = {
  ...RUN_CHECKS,
  spec: objectProblem,
  policies: objectProblem,
  state: objectProblem,
  allowDuplicates: booleanProblem,
};

/** An omitted field keeps its value. A given `spec` or `items` replaces the whole earlier value. */
export interface UpdateScheduleOptions extends Partial<CreateScheduleOptions> {
  readonly items?: BatchItems | undefined;
}

/**
 * The SDK's handle of a schedule, whose `update` also changes the items and options of the schedule's batches. Each method that
 * changes the schedule returns after the Temporal server has applied the change.
 */
export interface ScheduleHandle extends Omit<TemporalScheduleHandle, 'update'> {
  /**
   * Changes the schedule. A running batch keeps its items and options.
   *
   * The method uses the SDK's `update`. If another client changes the schedule at the same moment, one of the two changes may be
   * lost (docs/schedules.md).
   *
   * @throws InvalidRequestError if the ID, an option or a request is invalid
   * @throws NotFoundError if the schedule does not exist, or does not start batches
   * @throws ConflictError if the Temporal server reports a conflict with another change in each of five attempts
   */
  update(change: UpdateScheduleOptions, options?: CallOptions): Promise<void>;
}

/** Creates and changes Temporal Schedules that start batches. Available as `FollowUpClient.schedules`. */
export class ScheduleClient {
  readonly #calls: CallRunner;

  constructor(calls: CallRunner) {
    this.#calls = calls;
  }

  /**
   * Creates a schedule. Each firing starts a batch. The batch ID is the schedule's ID and the time of the firing, for example
   * `nightly-2026-11-21T03:00:00Z`.
   *
   * @param scheduleId at most 79 characters, without a slash
   * @param requests at most 1 MiB as JSON, stored in the schedule. A request must not have a `requestId`, because only the first
   *   firing would send its message.
   * @param createOptions `policies.catchupWindow` is `10m` by default
   * @throws InvalidRequestError if the ID, an option or a request is invalid, or if the Temporal server rejects the schedule
   * @throws ConflictError if a schedule with this ID exists
   */
  async create(
    scheduleId: string,
    requests: BatchItems,
    createOptions: CreateScheduleOptions & CallOptions,
  ): Promise<ScheduleHandle> {
    checkOptions(createOptions, { ...CREATE_CHECKS, ...CALL_CHECKS });
    const { signal, timeout, ...options } = createOptions;
    const { spec, policies = {}, state = {}, allowDuplicates, ...settings } = options;
    // Callers without TypeScript may omit the times.
    if ((spec as unknown) === undefined)
      throw invalidFieldError('spec', 'is missing; set it to the times at which the schedule starts a batch');
    await this.#calls.run({ signal, timeout }, async (client) => {
      const items = await checkSchedule(scheduleId, requests, { allowDuplicates });
      const action = {
        type: 'startWorkflow' as const,
        workflowType: BATCH_WORKFLOW,
        // The Temporal server appends the time of each firing.
        workflowId: batchWorkflowId(scheduleId),
        // The SDK sends the priority, although the type of the action does not have this field.
        priority: BATCH_PRIORITY,
        ...this.#buildStart(scheduleId, items),
        args: [{ items, ...settings }] as [BatchInput],
      };
      // Ten minutes cover a restart. After a longer outage, missed batches must not start at an unexpected time of day.
      const withDefault = { catchupWindow: '10m', ...definedFields(policies) };
      const schedule = { scheduleId, action, spec, state, policies: withDefault };
      await client.schedule.create(schedule).catch(throwScheduleError);
    });
    return this.getHandle(scheduleId);
  }

  /** Returns a handle for a schedule ID, without a request. @throws InvalidRequestError if the ID is not a non-empty string */
  getHandle(scheduleId: string): ScheduleHandle {
    checkName('scheduleId', scheduleId);
    const calls = this.#calls;
    const temporal = calls.client.schedule.getHandle(scheduleId);
    const handle = Object.assign(calls.client.schedule.getHandle(scheduleId), {
      pause: (note?: string) => untilApplied(temporal, temporal.pause(note)),
      unpause: (note?: string) => untilApplied(temporal, temporal.unpause(note)),
      trigger: (overlap?: ScheduleOverlapPolicy) => untilApplied(temporal, temporal.trigger(overlap)),
      backfill: (times: Backfill | Backfill[]) => untilApplied(temporal, temporal.backfill(times)),
      update: (change: UpdateScheduleOptions, options: CallOptions = {}) =>
        calls.run(options, (client) => this.#update(client, scheduleId, change)),
    });
    // A logged handle must not show the connection, which has the API key.
    return Object.defineProperty(handle, 'client', { enumerable: false });
  }

  async #update(client: Client, scheduleId: string, change: UpdateScheduleOptions): Promise<void> {
    // `checkSchedule` checks the items.
    checkOptions(change, { ...CREATE_CHECKS, items: () => undefined }, 'change');
    const { items: requests, spec, policies = {}, state = {}, allowDuplicates, ...settings } = change;
    const items = requests && (await checkSchedule(scheduleId, requests, { allowDuplicates }));
    const applyChange = ({ action, ...current }: ScheduleDescription) => {
      if (action.workflowType !== BATCH_WORKFLOW)
        throw notABatchScheduleError(scheduleId, action.workflowType);
      const [input, ...further] = (action.args ?? []) as BatchInput[];
      return {
        spec: spec ?? current.spec,
        policies: { ...current.policies, ...definedFields(policies) },
        state: { ...current.state, ...definedFields(state) },
        action: {
          ...action,
          ...(items && this.#buildStart(scheduleId, items)),
          // The description has the search attributes in two forms, and the SDK accepts only one. The typed form stays.
          searchAttributes: {},
          args: [{ ...input, ...definedFields({ items, ...settings }) }, ...further] as [BatchInput],
        },
      };
    };
    await updateThroughConflicts(client, scheduleId, applyChange);
  }

  #buildStart(scheduleId: string, items: readonly FollowUpRequest[]) {
    const staticSummary = `${batchTitle(items.length)}, started by the schedule ${markdownCode(scheduleId)}`;
    return { taskQueue: this.#calls.taskQueue, staticSummary };
  }
}

/** The text that the Temporal server appends to the schedule ID. The time differs at each firing, and the length does not. */
const FIRING_SUFFIX = '-2006-01-02T15:04:05Z';

const NO_REQUEST_IDS = 'is not allowed in a schedule, because only the first firing would send the message';

/** Checks the ID and the requests of a schedule, and returns the requests. @throws InvalidRequestError if one of them is invalid */
export async function checkSchedule(
  scheduleId: string,
  requests: BatchItems<unknown>,
  options: DuplicateOptions = {},
) {
  checkName('scheduleId', scheduleId);
  checkOptions(options, { allowDuplicates: booleanProblem });
  const text = batchIdProblem(scheduleId, FIRING_SUFFIX);
  if (text !== undefined) throw invalidFieldError('scheduleId', text);
  const remedy = 'change one of them';
  const { items } = await checkBatch(requests, { ...options, batchId: scheduleId + FIRING_SUFFIX }, remedy);
  const checked = items.map(({ request }) => request);
  const problems: Problem[] = [];
  for (const [index, { requestId }] of checked.entries())
    if (requestId !== undefined) problems.push({ item: index + 1, field: 'requestId', text: NO_REQUEST_IDS });
  const bytes = jsonByteLength(checked);
  const tooMuch = `${bytes} bytes as JSON exceed the maximum of ${MAX_INPUT_BYTES} bytes; run "batch run" with cron instead of a schedule`;
  if (bytes > MAX_INPUT_BYTES) problems.push({ field: 'items', text: tooMuch });
  throwIfProblems(problems);
  return checked;
}

/** Removes undefined fields, because the SDK treats an undefined field as a value that was set. */
function definedFields<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

/**
 * Waits until the Temporal server has applied a change of a schedule. The older scheduler of the Temporal server responds to a change
 * before it applies the change. If another change follows at once, one of the two can be lost: of two pauses, triggers or backfills,
 * only the second one is applied, and an update overwrites a pause that follows the update. The response to a read comes after the change is
 * applied.
 */
async function untilApplied(handle: TemporalScheduleHandle, change: Promise<void>): Promise<void> {
  await change;
  // The change has succeeded, also if the read fails.
  await handle.describe().catch(() => undefined);
}

/** The maximum number of attempts if the Temporal server reports a conflict with another client's change. */
const MAX_UPDATES = 5;

/**
 * Updates a schedule with the SDK's `update`. The newer scheduler of the Temporal server rejects an update with
 * FAILED_PRECONDITION if another client changed the schedule between the read and the write. The update is then repeated from the
 * changed schedule.
 */
async function updateThroughConflicts(
  client: Client,
  scheduleId: string,
  change: Parameters<TemporalScheduleHandle['update']>[0],
): Promise<void> {
  for (let updates = 1; ; updates += 1) {
    let hasRead = false as boolean;
    try {
      const handle = client.schedule.getHandle(scheduleId);
      const update = handle.update((current) => {
        hasRead = true;
        return change(current);
      });
      await untilApplied(handle, update);
      return;
    } catch (error) {
      // The stored schedule can't be decoded.
      if ((error instanceof ValueError || error instanceof TypeError) && !hasRead) throw error;
      if (error instanceof ScheduleNotFoundError)
        throw notFoundError('schedule', scheduleId, client.options.namespace);
      if (!hasGrpcStatus(error, 'FAILED_PRECONDITION')) throwScheduleError(error);
      if (updates === MAX_UPDATES) throw scheduleUpdateConflictError(scheduleId, error);
    }
  }
}

function notABatchScheduleError(scheduleId: string, workflowType: string) {
  const message = `The schedule ${JSON.stringify(scheduleId)} does not start follow-up batches; it starts ${JSON.stringify(workflowType)}.`;
  return new NotFoundError('NOT_FOUND', message);
}

function throwScheduleError(error: unknown): never {
  if (error instanceof ScheduleAlreadyRunning) throw scheduleConflictError(error.scheduleId);
  const rejection = findGrpcError(error);
  // The SDK checks some values of spec and policies before its request. It also turns the response "Invalid schedule spec: …"
  // into a TypeError.
  const isConverterError = error instanceof ValueError && error.message.startsWith('Unable to convert');
  if (error instanceof TypeError || (error instanceof ValueError && !isConverterError))
    throw invalidFieldError('spec or policies', `is not valid: ${error.message}`);
  if (rejection?.status !== 'INVALID_ARGUMENT') throw error;
  throw invalidFieldError('schedule', `is rejected by the Temporal server: ${rejection.text}`);
}
