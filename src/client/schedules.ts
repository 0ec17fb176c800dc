import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  type ScheduleHandle as TemporalScheduleHandle,
  ScheduleNotFoundError,
  type ScheduleOptions,
} from '@temporalio/client';
import { BATCH_PRIORITY, batchIdProblem, batchSummaryText, MAX_INPUT_BYTES } from '../batch/items';
import type { BatchInput } from '../batch/memo';
import { isRecord, type Problem } from '../contract/checks';
import { batchWorkflowId } from '../contract/ids';
import { BATCH_WORKFLOW } from '../contract/names';
import type { FollowUpRequest } from '../contract/request';
import { jsonByteLength, markdownCode } from '../contract/text';
import { findGrpcError, hasGrpcStatus } from '../temporal/grpc-status';
import { type BatchItems, checkBatch, checkRunOptions, type RunOptions } from './batch/check';
import type { CallOptions, CallRunner } from './call-runner';
import {
  invalidFieldError,
  notFoundError,
  throwIfProblems,
  scheduleConflictError,
  scheduleUpdateConflictError,
} from './errors';
import { checkName } from './options';

/** When a schedule starts batches, and how each batch runs. */
export type CreateScheduleOptions = Pick<ScheduleOptions, 'spec' | 'policies' | 'state'> & RunOptions;

/** Fields that are not given stay as they are. `spec` and `items`, with the items' options, are replaced as a whole. */
export interface UpdateScheduleOptions extends Partial<CreateScheduleOptions> {
  readonly items?: BatchItems | undefined;
}

/** Temporal's own handle, whose `update` changes the items and options of the schedule's batches too. */
export interface ScheduleHandle extends Omit<TemporalScheduleHandle, 'update'> {
  /**
   * Changes the schedule. A running batch keeps its items and options.
   *
   * This is the SDK's own `update`: if another client changes the schedule at the same moment, one of the two changes is lost
   * (docs/schedules.md).
   *
   * @throws InvalidRequestError with every problem
   * @throws NotFoundError if the schedule does not exist, or does not start batches
   * @throws ConflictError if the Temporal server reports a conflict with another change, also after further attempts
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
   * Creates a schedule. Each firing starts a batch, whose ID is the schedule's ID and the time: `nightly-2026-11-21T03:00:00Z`.
   *
   * @param scheduleId at most 79 characters, without a slash
   * @param requests at most 1 MiB as JSON, stored in the schedule. They have no `requestId`, because each firing sends again.
   * @param options `policies.catchupWindow` is `10m` by default
   * @throws InvalidRequestError with every problem, also if the Temporal server rejects the schedule
   * @throws ConflictError if a schedule with this ID exists
   */
  async create(
    scheduleId: string,
    requests: BatchItems,
    { signal, timeout, ...options }: CreateScheduleOptions & CallOptions,
  ): Promise<ScheduleHandle> {
    const noSpec = { field: 'spec', text: 'is missing; it defines when the schedule fires' };
    checkRunOptions(options, ['spec', 'policies', 'state'], isRecord(options.spec) ? [] : [noSpec]);
    const { spec, policies = {}, state = {}, ...settings } = options;
    const items = await checkSchedule(scheduleId, requests);
    const action = {
      type: 'startWorkflow' as const,
      workflowType: BATCH_WORKFLOW,
      // The Temporal server appends the time of each firing.
      workflowId: batchWorkflowId(scheduleId),
      // The SDK sends the priority, although its type has no such field.
      priority: BATCH_PRIORITY,
      ...this.#startOf(scheduleId, items),
      args: [{ items, ...settings }] as [BatchInput],
    };
    // A restart loses no firing, and the firings of a long outage are not sent in the middle of the day.
    const withDefault = { catchupWindow: '10m', ...definedFields(policies) };
    const schedule = { scheduleId, action, spec, state, policies: withDefault };
    await this.#calls.run({ signal, timeout }, (client) =>
      client.schedule.create(schedule).catch(throwScheduleError),
    );
    return this.getHandle(scheduleId);
  }

  /** The handle of a schedule, whether it exists or not. @throws InvalidRequestError */
  getHandle(scheduleId: string): ScheduleHandle {
    checkName('scheduleId', scheduleId);
    const calls = this.#calls;
    const handle = Object.assign(calls.client.schedule.getHandle(scheduleId), {
      update: (change: UpdateScheduleOptions, options: CallOptions = {}) =>
        calls.run(options, (client) => this.#update(client, scheduleId, change)),
    });
    // A logged handle must not show the connection, which has the API key.
    return Object.defineProperty(handle, 'client', { enumerable: false });
  }

  async #update(client: Client, scheduleId: string, change: UpdateScheduleOptions): Promise<void> {
    const { items: requests, spec, policies = {}, state = {}, ...settings } = change;
    checkRunOptions(settings);
    const items = requests && (await checkSchedule(scheduleId, requests));
    const changed = ({ action, ...now }: ScheduleDescription) => {
      if (action.workflowType !== BATCH_WORKFLOW)
        throw notABatchScheduleError(client, scheduleId, action.workflowType);
      const [input, ...further] = (action.args ?? []) as BatchInput[];
      return {
        spec: spec ?? now.spec,
        policies: { ...now.policies, ...definedFields(policies) },
        state: { ...now.state, ...definedFields(state) },
        action: {
          ...action,
          ...(items && this.#startOf(scheduleId, items)),
          // The typed search attributes are the same, and the SDK accepts only one of the two.
          searchAttributes: {},
          args: [{ ...input, ...definedFields({ items, ...settings }) }, ...further] as [BatchInput],
        },
      };
    };
    await updateThroughConflicts(client, scheduleId, changed);
  }

  #startOf(scheduleId: string, items: readonly FollowUpRequest[]) {
    const staticSummary = `${batchSummaryText(items.length)} by the schedule ${markdownCode(scheduleId)}`;
    return { taskQueue: this.#calls.taskQueue, staticSummary };
  }
}

const NO_REQUEST_IDS = 'must not be given in a schedule: from the second firing on, nothing would be sent';

/** @throws InvalidRequestError */
export async function checkSchedule(scheduleId: string, requests: BatchItems<unknown>) {
  // The batch ID of any firing has this length.
  const batchId = `${scheduleId}-2006-01-02T15:04:05Z`;
  const text = batchIdProblem(batchId);
  if (text !== undefined) throw invalidFieldError('scheduleId', text);
  const { items } = await checkBatch(requests, { batchId });
  const checked = items.map(({ request }) => request);
  const problems: Problem[] = [];
  for (const [index, { key }] of items.entries())
    if (key === null) problems.push({ item: index + 1, field: 'requestId', text: NO_REQUEST_IDS });
  const mib = jsonByteLength(checked) / MAX_INPUT_BYTES;
  const tooMuch = `${mib.toFixed(1)} MiB as JSON, and a schedule holds 1 MiB at most; let cron run "batch run" instead`;
  if (mib > 1) problems.push({ field: 'items', text: tooMuch });
  throwIfProblems(problems);
  return checked;
}

/** Removes undefined fields, because the SDK treats an undefined field as set. */
function definedFields<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

/** How many updates are made if the Temporal server reports each time that another client changed the schedule. */
const MAX_UPDATES = 5;

/**
 * Makes the SDK's own update. The newer scheduler of the Temporal server answers with FAILED_PRECONDITION if another client
 * changed the schedule between the read and the write, so that the update is made again from the changed schedule.
 */
async function updateThroughConflicts(
  client: Client,
  scheduleId: string,
  change: Parameters<TemporalScheduleHandle['update']>[0],
): Promise<void> {
  for (let updates = 1; ; updates += 1) {
    try {
      await client.schedule.getHandle(scheduleId).update(change);
      return;
    } catch (error) {
      if (error instanceof ScheduleNotFoundError)
        throw notFoundError('schedule', scheduleId, client.options.namespace);
      if (!hasGrpcStatus(error, 'FAILED_PRECONDITION')) throwScheduleError(error);
      if (updates === MAX_UPDATES) throw scheduleUpdateConflictError(scheduleId, error);
    }
  }
}

function notABatchScheduleError({ options }: Client, scheduleId: string, workflowType: string) {
  const reason = `the schedule with this ID does not start follow-up batches; it starts ${JSON.stringify(workflowType)}`;
  return notFoundError('schedule', scheduleId, options.namespace, reason);
}

function throwScheduleError(error: unknown): never {
  if (error instanceof ScheduleAlreadyRunning) throw scheduleConflictError(error.scheduleId);
  const rejection = findGrpcError(error);
  // The SDK turns the response "Invalid schedule spec: …" into a TypeError.
  if (error instanceof TypeError) throw invalidFieldError('spec', `is rejected: ${error.message}`);
  if (rejection?.status !== 'INVALID_ARGUMENT') throw error;
  throw invalidFieldError('schedule', `the Temporal server rejects it: ${rejection.text}`);
}
