import {
  type Client,
  ScheduleAlreadyRunning,
  ScheduleClient as TemporalScheduleClient,
} from '@temporalio/client';
import { BATCH_WORKFLOW } from '../../core/batch-workflows';
import type { BatchClient } from '../batch/batch-client';
import { UNDECODED } from '../list';
import {
  checkedItems,
  idProblems,
  inputOf,
  itemProblems,
  itemsOf,
  newAction,
  type ScheduleItems,
} from './action';
import { type ListedSchedule, listedOf } from './description';
import { ScheduleExistsError } from '../errors';
import { differences, findSchedule, ScheduleHandle } from './schedule-handle';
import {
  checkSpec,
  defaultSettings,
  inScheduleWords,
  refuse,
  type ScheduleSpec,
  settingsOf,
  temporalPolicies,
  temporalSpec,
} from './settings';

export interface NewScheduleSpec extends ScheduleSpec {
  /** Fires only when triggered, until it is unpaused. @default false */
  readonly paused?: boolean;
}

/** Schedules whose last firings are looked up at once. */
const READ_AHEAD = 16;

/** Batches at set times, by Temporal Schedules. Reached as `FollowUpClient.schedules`. */
export class ScheduleClient {
  constructor(
    private readonly client: Client,
    private readonly taskQueue: string,
    private readonly batches: BatchClient,
  ) {}

  /**
   * Creates a schedule, of which each firing is a batch of its own. Safe to repeat: the same schedule stays as it is.
   *
   * @param scheduleId 1 to 79 letters, digits, `-`, `.`, `_` and `~`
   * @param items 1 MiB of JSON at most; they lie in the schedule
   * @returns its handle, with `made`; whether a schedule that was there is paused is not looked at
   * @throws InvalidScheduleError or InvalidBatchError with every problem; ScheduleExistsError where another schedule has
   *   this id
   */
  async create(
    scheduleId: string,
    items: ScheduleItems,
    { paused = false, ...spec }: NewScheduleSpec,
  ): Promise<ScheduleHandle> {
    const { settings, problems } = checkSpec(spec, defaultSettings(this.taskQueue));
    refuse([...idProblems(scheduleId), ...problems]);
    const asked = { settings, items: await checkedItems(scheduleId, items) };
    refuse(itemProblems(scheduleId, asked.items));
    try {
      await this.client.schedule.create({
        scheduleId,
        spec: temporalSpec(settings),
        policies: temporalPolicies(settings),
        action: newAction(scheduleId, settings, asked.items),
        state: { paused, ...(spec.note === undefined ? {} : { note: spec.note }) },
      });
      return this.handle(scheduleId, 'created');
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw inScheduleWords(error, spec);
    }
    const schedule = await findSchedule(this.client, scheduleId);
    const { action } = schedule;
    const there = { settings: settingsOf(schedule, inputOf(action)), items: itemsOf(action) };
    const differing = differences(there, asked);
    if (differing.length > 0) {
      const words = differing.map(({ what, before, after }) => `${what}: ${before}, and not ${after}`);
      throw new ScheduleExistsError(scheduleId, words);
    }
    return this.handle(scheduleId, 'unchanged');
  }

  /** The handle of a schedule, whether it exists or not. */
  getHandle(scheduleId: string): ScheduleHandle {
    return this.handle(scheduleId);
  }

  /** Schedules of follow-ups in the namespace, in no order; eventually consistent. */
  async *list(): AsyncGenerator<ListedSchedule, void, undefined> {
    const { connection, options } = this.client;
    const { namespace, identity } = options;
    const blind = new TemporalScheduleClient({
      connection,
      namespace,
      identity,
      dataConverter: UNDECODED,
    });
    const ahead: Promise<ListedSchedule>[] = [];
    for await (const schedule of blind.list()) {
      if (schedule.action?.workflowType !== BATCH_WORKFLOW) continue;
      const listed = listedOf(this.batches, schedule);
      // A failure is thrown when it is its turn.
      listed.catch(() => undefined);
      ahead.push(listed);
      const next = ahead.length > READ_AHEAD ? ahead.shift() : undefined;
      if (next !== undefined) yield await next;
    }
    for (const listed of ahead) yield await listed;
  }

  private handle(scheduleId: string, made?: 'created' | 'unchanged'): ScheduleHandle {
    return new ScheduleHandle(this.client, this.batches, scheduleId, made);
  }
}
