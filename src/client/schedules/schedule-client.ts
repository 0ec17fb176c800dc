import {
  type Client,
  ScheduleAlreadyRunning,
  ScheduleClient as TemporalScheduleClient,
  type ScheduleOptions,
  type ScheduleSummary,
} from '@temporalio/client';
import { scheduleConflict } from '../errors';
import { BATCH_WORKFLOW } from '../../core/batch-workflows';
import type { BatchItems } from '../batch/batch-client';
import { UNDECODED } from '../list';
import { checkFiringOptions, checkItems, checkScheduleId, type FiringOptions, newAction } from './action';
import { inFieldWords, ScheduleHandle } from './schedule-handle';

/** When a schedule fires, in Temporal's own types, and how each of its batches runs. */
export interface NewScheduleOptions
  extends
    Pick<ScheduleOptions, 'spec' | 'policies' | 'state' | 'memo' | 'typedSearchAttributes'>,
    FiringOptions {}

/**
 * A restart of the server loses no firing, and what an outage has kept back is not sent in the middle of the day.
 * Temporal's own default is a year.
 */
const CATCHUP_WINDOW = '10m';

/** Batches at set times: Temporal's schedules, whose action starts a batch. Reached as `FollowUpClient.schedules`. */
export class ScheduleClient {
  constructor(
    private readonly client: Client,
    private readonly taskQueue: string,
  ) {}

  /**
   * Creates a schedule. Each firing is a batch of its own, named after the schedule and the time that it was due, such as
   * `nightly-2026-11-21T03:00:00Z`.
   *
   * @param scheduleId 1 to 79 letters, digits, `-`, `.`, `_` and `~`
   * @param items at most 1 MiB as JSON, kept in the schedule. They have no `requestId`, because each firing sends anew.
   * @param options `policies.catchupWindow` is `10m` unless given
   * @throws InvalidRequestError with every problem, also for what the server refuses
   * @throws ConflictError when a schedule has this id; use {@link ScheduleHandle.update} to change it
   */
  async create(
    scheduleId: string,
    items: BatchItems,
    { policies, concurrency, tolerate, taskQueue = this.taskQueue, ...options }: NewScheduleOptions,
  ): Promise<ScheduleHandle> {
    checkScheduleId(scheduleId);
    checkFiringOptions({ concurrency, tolerate });
    const checked = await checkItems(scheduleId, items);
    try {
      await this.client.schedule.create({
        ...options,
        scheduleId,
        policies: { catchupWindow: CATCHUP_WINDOW, ...policies },
        action: newAction(scheduleId, checked, { concurrency, tolerate, taskQueue }),
      });
    } catch (error) {
      throw error instanceof ScheduleAlreadyRunning ? scheduleConflict(scheduleId) : inFieldWords(error);
    }
    return this.getHandle(scheduleId);
  }

  /** The handle of a schedule, whether it exists or not. */
  getHandle(scheduleId: string): ScheduleHandle {
    return new ScheduleHandle(this.client, scheduleId);
  }

  /** Schedules of follow-ups in the namespace, in no order; eventually consistent. Memos are not decoded. */
  async *list(): AsyncGenerator<ScheduleSummary, void, undefined> {
    const { connection, options } = this.client;
    const { namespace, identity } = options;
    // Schedules of other services may be encrypted with keys that are not ours.
    const blind = new TemporalScheduleClient({ connection, namespace, identity, dataConverter: UNDECODED });
    for await (const schedule of blind.list())
      if (schedule.action?.workflowType === BATCH_WORKFLOW) yield schedule;
  }
}
