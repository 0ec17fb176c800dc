import {
  type Client,
  ScheduleAlreadyRunning,
  ScheduleClient as TemporalScheduleClient,
} from '@temporalio/client';
import { BATCH_WORKFLOW } from '../../contract/batch-workflows';
import type { FollowUpRequest } from '../../contract/request';
import type { BatchClient } from '../batch/batch-client';
import { batchOfRequests } from '../batch/batch-of-requests';
import type { CheckedBatch } from '../batch/item-collector';
import { BLIND_CONVERTER } from '../blind-converter';
import { eachOf } from '../each-of';
import { type Backfilled, backfillSchedule } from './backfill';
import { definitionOf, editedItemProblems, itemProblems, mergedAction, temporalOptions } from './definition';
import { descriptionOf, type ListedSchedule, listedOf, type ScheduleDescription } from './description';
import { type Difference, differences } from './differences';
import { ScheduleExistsError } from './errors';
import { findSchedule } from './find-schedule';
import type { Overlap } from './overlap';
import { idProblems, inScheduleWords, noteProblems, overlapProblems, refuse } from './problems';
import { exampleBatchId } from './schedule-id';
import { checkSettings, defaultSettings, type ScheduleOptions } from './settings';
import { type Triggered, triggerSchedule } from './trigger';

export interface NewScheduleOptions extends ScheduleOptions {
  /** Fires only when triggered, until it is unpaused. @default false */
  readonly paused?: boolean;
  /** Said of it in lists and in the Web UI; whoever pauses it replaces it. At most 255 characters. */
  readonly note?: string;
}

export interface ScheduleChange extends ScheduleOptions {
  /** What it sends from the next firing on; its options with it. */
  readonly batch?: CheckedBatch;
  readonly note?: string;
}

/** Schedules whose last firings are looked up at once. */
const AT_ONCE = 16;

/** Batches at set times, by Temporal Schedules. Reached as `FollowUpClient.schedules`. */
export class ScheduleClient {
  constructor(
    private readonly client: Client,
    private readonly taskQueue: string,
    private readonly batches: BatchClient,
  ) {}

  /** Checks requests as the items of a schedule. @throws InvalidBatchError with every problem, by number from 1 */
  async check(requests: Iterable<FollowUpRequest>, scheduleId: string): Promise<CheckedBatch> {
    refuse(idProblems(scheduleId));
    return batchOfRequests(requests, exampleBatchId(scheduleId));
  }

  /**
   * Makes a schedule, of which each firing is a batch of its own. Safe to repeat: the same schedule stays as it is.
   *
   * @returns whether it was made by this call; whether one that was there is paused is not looked at
   * @throws InvalidScheduleError with every problem; ScheduleExistsError where another one has this id
   */
  async create(
    scheduleId: string,
    batch: CheckedBatch,
    { paused = false, note, ...options }: NewScheduleOptions,
  ): Promise<'created' | 'unchanged'> {
    const { settings, problems } = checkSettings(options, defaultSettings(this.taskQueue));
    const { items } = batch;
    refuse([
      ...idProblems(scheduleId),
      ...problems,
      ...noteProblems(note),
      ...itemProblems(scheduleId, items),
    ]);
    const definition = { settings, items };
    try {
      await this.client.schedule.create({
        scheduleId,
        ...temporalOptions(scheduleId, definition),
        state: { paused, ...(note === undefined ? {} : { note }) },
      });
      return 'created';
    } catch (error) {
      if (!(error instanceof ScheduleAlreadyRunning)) throw inScheduleWords(error);
    }
    const differing = differences(definitionOf(await this.find(scheduleId)), definition);
    if (differing.length > 0) {
      const words = differing.map(({ what, before, after }) => `${what}: ${before}, and not ${after}`);
      throw new ScheduleExistsError(scheduleId, words);
    }
    return 'unchanged';
  }

  /**
   * Changes what is given of a schedule, timing as a whole. A batch that runs goes on as it was.
   *
   * @returns what has changed; empty for nothing
   * @throws InvalidScheduleError, ScheduleNotFoundError
   */
  async update(scheduleId: string, change: ScheduleChange): Promise<Difference[]> {
    const { batch, note, ...options } = change;
    const there = await this.find(scheduleId);
    const before = definitionOf(there);
    const { settings, problems } = checkSettings(options, before.settings);
    const items = batch?.items ?? before.items;
    refuse([
      ...problems,
      ...noteProblems(note),
      ...(batch === undefined ? editedItemProblems(scheduleId, there) : itemProblems(scheduleId, items)),
    ]);
    const after = { settings, items };
    const changed = differences(before, after);
    const noteBefore = there.state.note ?? '';
    if (note !== undefined && note !== noteBefore) {
      changed.push({ what: 'note', before: JSON.stringify(noteBefore), after: JSON.stringify(note) });
    }
    if (changed.length === 0) return [];
    const made = temporalOptions(scheduleId, after);
    try {
      await this.handle(scheduleId).update(({ state, spec, action }) => ({
        ...made,
        action: mergedAction(action, made.action),
        // Nothing here sets times to skip; somebody else may have.
        spec: { ...made.spec, ...(spec.skip === undefined ? {} : { skip: spec.skip }) },
        state: { ...state, ...(note === undefined ? {} : { note }) },
      }));
    } catch (error) {
      throw inScheduleWords(error);
    }
    return changed;
  }

  /** Schedules of follow-ups in the namespace; eventually consistent. */
  async list(): Promise<ListedSchedule[]> {
    const { connection, options } = this.client;
    const { namespace, identity } = options;
    const blind = new TemporalScheduleClient({
      connection,
      namespace,
      identity,
      dataConverter: BLIND_CONVERTER,
    });
    const all = await eachOf(blind.list(), AT_ONCE, async (schedule) =>
      schedule.action?.workflowType === BATCH_WORKFLOW ? listedOf(this.batches, schedule) : null,
    );
    const found = all.filter((schedule) => schedule !== null);
    return found.sort((one, other) => (one.scheduleId < other.scheduleId ? -1 : 1));
  }

  /** @throws ScheduleNotFoundError */
  async describe(scheduleId: string): Promise<ScheduleDescription> {
    return descriptionOf(this.batches, await this.find(scheduleId));
  }

  /**
   * Fires now, a paused schedule too.
   *
   * @param overlap if a batch runs. @default the schedule's own
   * @throws InvalidScheduleError, ScheduleNotFoundError
   */
  async trigger(scheduleId: string, overlap?: Overlap): Promise<Triggered> {
    refuse(overlapProblems(overlap));
    return triggerSchedule(this.client, scheduleId, overlap);
  }

  /** It fires no more, unless triggered; a batch that runs goes on. @throws ScheduleNotFoundError */
  async pause(scheduleId: string, note: string): Promise<void> {
    refuse(noteProblems(note));
    await this.find(scheduleId);
    await this.handle(scheduleId).pause(note);
  }

  /** @throws ScheduleNotFoundError */
  async unpause(scheduleId: string, note: string): Promise<void> {
    refuse(noteProblems(note));
    await this.find(scheduleId);
    await this.handle(scheduleId).unpause(note);
  }

  /**
   * Fires for the times of a range, both ends included, as if it passed now. A time for which there is a batch in the
   * namespace is left out: a batch has the time in its id.
   *
   * @param from ISO 8601 with a zone, as `to`
   * @param overlap @default 'buffer-all': one batch after the other; with `skip` the first one only would run
   * @throws InvalidScheduleError where the range holds no time, or more than 1,000; ScheduleNotFoundError
   */
  async backfill(
    scheduleId: string,
    from: string,
    to: string,
    overlap: Overlap = 'buffer-all',
  ): Promise<Backfilled> {
    return backfillSchedule(this.client, scheduleId, from, to, overlap);
  }

  /** Removes it; a batch that runs goes on. @throws ScheduleNotFoundError */
  async delete(scheduleId: string): Promise<void> {
    await this.find(scheduleId);
    await this.handle(scheduleId).delete();
  }

  private handle(scheduleId: string) {
    return this.client.schedule.getHandle(scheduleId);
  }

  private find(scheduleId: string) {
    return findSchedule(this.client, scheduleId);
  }
}
