import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Client,
  type ScheduleDescription as TemporalSchedule,
  ScheduleNotFoundError as TemporalScheduleNotFound,
} from '@temporalio/client';
import { ValueError } from '@temporalio/common';
import { type BatchItem, isTolerance } from '../../core/batch';
import { msNumberToTs, tsToDate } from '../../temporal/sdk-internals';
import { BATCH_WORKFLOW } from '../../core/batch-workflows';
import type { BatchClient } from '../batch/batch-client';
import { itemsDigest } from '../batch/identity';
import {
  batchIdOfFiring,
  changedAction,
  checkedItems,
  inputOf,
  itemProblems,
  itemsOf,
  keptItemProblems,
  type ScheduleItems,
} from './action';
import { descriptionOf, type ScheduleDescription } from './description';
import { ScheduleNotFoundError } from '../errors';
import {
  checkSpec,
  inScheduleWords,
  noteProblems,
  type Overlap,
  overlapOf,
  overlapProblems,
  parseTime,
  policyOf,
  refuse,
  type ScheduleSettings,
  type ScheduleSpec,
  settingRows,
  settingsOf,
  temporalPolicies,
  temporalSpec,
  type Time,
} from './settings';

export interface TriggerOptions {
  /** What happens if a batch of the schedule runs. @default the schedule's own policy */
  readonly overlap?: Overlap;
  /** Ends the wait for the batch; the schedule fires nevertheless. */
  readonly signal?: AbortSignal;
}

/** What a trigger has come to. */
export interface Triggered {
  /** `waiting`: no batch was seen yet; it may be buffered behind one that runs. */
  readonly outcome: 'started' | 'skipped' | 'waiting';
  /** The batch that was started. */
  readonly batchId: string | null;
}

export interface BackfillOptions {
  /** Both ends are included. */
  readonly start: Time;
  readonly end: Time;
  /** @default 'buffer-all': one batch after the other; with `skip` the first one only would run */
  readonly overlap?: Overlap;
}

/** What a backfill asks for. */
export interface Backfilled {
  /** The times in the range at which the schedule would have fired. */
  readonly times: readonly string[];
  readonly overlap: Overlap;
}

export interface ScheduleChange extends ScheduleSpec {
  /** What it sends from the next firing on; its options with it. */
  readonly items?: ScheduleItems;
}

/** One thing in which two schedules differ, in words. */
export interface Difference {
  readonly what: string;
  readonly before: string;
  readonly after: string;
}

/** A trigger is carried out within milliseconds by a server that has the time. */
const SEEN_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 100;

/** Times of one backfill: the server buffers no more (source: server 1.31, scheduler's `MaxBufferSize`). */
const MAX_TIMES = 1_000;

/** A schedule of follow-ups. Every method throws ScheduleNotFoundError where there is none of this id. */
export class ScheduleHandle {
  /** @param made what `schedules.create` did; undefined for a handle of `getHandle` */
  constructor(
    private readonly client: Client,
    private readonly batches: BatchClient,
    readonly scheduleId: string,
    readonly made?: 'created' | 'unchanged',
  ) {}

  async describe(): Promise<ScheduleDescription> {
    return descriptionOf(this.batches, await this.find());
  }

  /** Fires now, a paused schedule too, and looks what becomes of it. @throws InvalidScheduleError */
  async trigger({ overlap, signal }: TriggerOptions = {}): Promise<Triggered> {
    refuse(overlapProblems(overlap));
    const { info: before, policies } = await this.find();
    await untilNextSecond(before.recentActions.at(-1)?.takenAt, signal);
    const known = new Set(before.recentActions.map(({ action }) => action.workflow.firstExecutionRunId));
    await this.temporal.trigger(policyOf(overlap ?? overlapOf(policies.overlap)));
    const giveUpAt = Date.now() + SEEN_WITHIN_MS;
    while (Date.now() < giveUpAt) {
      const { info } = await this.find();
      const last = info.recentActions.at(-1)?.action.workflow;
      if (last !== undefined && !known.has(last.firstExecutionRunId))
        return { outcome: 'started', batchId: batchIdOfFiring(last.workflowId) };
      if (info.numActionsSkippedOverlap > before.numActionsSkippedOverlap)
        return { outcome: 'skipped', batchId: null };
      await sleep(LOOK_EVERY_MS, undefined, signal === undefined ? {} : { signal });
    }
    return { outcome: 'waiting', batchId: null };
  }

  /** It fires no more, unless triggered; a batch that runs goes on. @throws InvalidScheduleError */
  async pause(note?: string): Promise<void> {
    refuse(noteProblems(note));
    await this.find();
    await this.temporal.pause(note ?? 'paused by FollowUpClient');
  }

  /** @throws InvalidScheduleError */
  async unpause(note?: string): Promise<void> {
    refuse(noteProblems(note));
    await this.find();
    await this.temporal.unpause(note ?? 'unpaused by FollowUpClient');
  }

  /**
   * Fires for the times of a range as if it passed now. A time for which there is a batch in the namespace is left out: a
   * batch has the time in its id.
   *
   * @throws InvalidScheduleError where the range holds no time, or more than 1,000
   */
  async backfill(options: BackfillOptions): Promise<Backfilled> {
    const { overlap = 'buffer-all' } = options;
    const problems = overlapProblems(overlap);
    const start = parseTime('start', options.start, problems) ?? new Date(0);
    const end = parseTime('end', options.end, problems) ?? start;
    if (start > end) problems.push('end: must not be before start');
    refuse(problems);
    const { scheduleId } = await this.find();
    const { startTime } = await this.client.workflowService.listScheduleMatchingTimes({
      namespace: this.client.options.namespace,
      scheduleId,
      // It leaves out the beginning of the range, unlike the backfill itself (measured, server 1.31.2).
      startTime: msNumberToTs(start.getTime() - 1),
      endTime: msNumberToTs(end.getTime()),
    });
    const times = startTime.map((time) => tsToDate(time).toISOString());
    if (times.length === 0) refuse(['start, end: the schedule has no time between them']);
    if (times.length > MAX_TIMES) {
      const found = `the schedule has ${times.length} times between them`;
      refuse([`start, end: ${found}; at most ${MAX_TIMES} are possible`]);
    }
    await this.temporal.backfill({ start, end, overlap: policyOf(overlap) });
    return { times, overlap };
  }

  /**
   * Changes what is given, timing and items as a whole. A batch that runs goes on as it was, and what somebody else has
   * set and this client does not know is kept.
   *
   * @returns what has changed; empty for nothing
   * @throws InvalidScheduleError
   */
  async update({ items: given, ...spec }: ScheduleChange): Promise<Difference[]> {
    const there = await this.find();
    const { action, state } = there;
    const before = { settings: settingsOf(there, inputOf(action)), items: itemsOf(action) };
    const { settings, problems } = checkSpec(spec, before.settings);
    const items = given === undefined ? undefined : await checkedItems(this.scheduleId, given);
    refuse([
      ...problems,
      ...(items === undefined ? keptItemProblems(there) : itemProblems(this.scheduleId, items)),
      ...(isTolerance(settings.tolerate)
        ? []
        : [
            `tolerate: as it is in the schedule, ${JSON.stringify(settings.tolerate)} is not a tolerance; give it again`,
          ]),
    ]);
    const after = { settings, items: items ?? before.items };
    const changed = differences(before, after);
    const { note: noteBefore = '' } = state;
    const { note = noteBefore } = spec;
    if (note !== noteBefore)
      changed.push({ what: 'note', before: JSON.stringify(noteBefore), after: JSON.stringify(note) });
    // Items that somebody has broken by hand are not among those that can be compared.
    if (
      items !== undefined &&
      keptItemProblems(there).length > 0 &&
      !changed.some(({ what }) => what === 'items')
    )
      changed.push({ what: 'items', before: 'some that are invalid', after: itemWords(after) });
    if (changed.length === 0) return [];
    try {
      await this.temporal.update((now) => ({
        spec: temporalSpec(settings, now.spec),
        policies: temporalPolicies(settings),
        action: changedAction(now, settings, items),
        // The server writes notes too, such as why it has paused the schedule.
        state: spec.note === undefined ? now.state : { ...now.state, note: spec.note },
      }));
    } catch (error) {
      throw inScheduleWords(error, spec);
    }
    return changed;
  }

  /** Removes the schedule; a batch that runs goes on. */
  async delete(): Promise<void> {
    await this.find();
    await this.temporal.delete();
  }

  private get temporal() {
    return this.client.schedule.getHandle(this.scheduleId);
  }

  private find(): Promise<TemporalSchedule> {
    return findSchedule(this.client, this.scheduleId);
  }
}

/** A schedule of follow-ups as Temporal tells it. @throws ScheduleNotFoundError */
export async function findSchedule(client: Client, scheduleId: string): Promise<TemporalSchedule> {
  const { namespace } = client.options;
  const refuseForeign = (workflowType: string | undefined): void => {
    if (workflowType !== BATCH_WORKFLOW) throw new ScheduleNotFoundError(scheduleId, namespace, workflowType);
  };
  try {
    const schedule = await client.schedule.getHandle(scheduleId).describe();
    refuseForeign(schedule.action.workflowType);
    return schedule;
  } catch (error) {
    if (error instanceof TemporalScheduleNotFound) throw new ScheduleNotFoundError(scheduleId, namespace);
    // What can't be decoded is another service's, most likely.
    if (error instanceof ValueError) {
      const { schedule } = await client.workflowService.describeSchedule({ namespace, scheduleId });
      refuseForeign(schedule?.action?.startWorkflow?.workflowType?.name ?? undefined);
    }
    throw error;
  }
}

interface Definition {
  readonly settings: ScheduleSettings;
  readonly items: readonly BatchItem[];
}

/** What differs between two schedules; empty for the same. */
export function differences(before: Definition, after: Definition): Difference[] {
  const rows = settingRows(after.settings);
  const settings = settingRows(before.settings).map(([what, words], index) => {
    return { what, before: words, after: rows[index]?.[1] ?? '' };
  });
  const items = { what: 'items', before: itemWords(before), after: itemWords(after) };
  return [...settings, items].filter((each) => each.before !== each.after);
}

/** Items in a few words, which differ for other items. */
function itemWords({ items }: Definition): string {
  return `${items.length} (${itemsDigest(items).slice(0, 8)})`;
}

/**
 * A firing has the second in its batch id, and one in the second of another is dropped by the server without a word
 * (measured, server 1.31.2).
 */
async function untilNextSecond(last: Date | undefined, signal: AbortSignal | undefined): Promise<void> {
  const next = last === undefined ? 0 : Math.floor(last.getTime() / 1_000 + 1) * 1_000;
  await sleep(
    Math.min(Math.max(0, next - Date.now()), 1_000),
    undefined,
    signal === undefined ? {} : { signal },
  );
}
