import type { ScheduleDescription as TemporalSchedule, ScheduleSummary as Listed } from '@temporalio/client';
import type { BatchClient } from '../batch/batch-client';
import { itemsDigest } from '../batch/identity';
import { definitionOf } from './definition';
import { type Firing, firingOf } from './firings';
import { batchIdOfFiring } from './schedule-id';
import type { ScheduleSettings } from './settings';
import { timezoneOf } from './timezone';
import { type Timing, timingsOf } from './timing';

/** A schedule, what it sends, and what it did. */
export interface ScheduleDescription {
  readonly scheduleId: string;
  readonly paused: boolean;
  /** What was said of it last, above all why it is paused; the server writes it too when a batch has failed. */
  readonly note: string | null;
  readonly settings: ScheduleSettings;
  readonly items: {
    readonly count: number;
    readonly projects: number;
    readonly jobs: number;
    /** The SHA-256 of items, options and order. */
    readonly digest: string;
  };
  readonly createdAt: string;
  readonly updatedAt: string | null;
  /** At most 10. */
  readonly next: readonly string[];
  /** The last 10 firings, the newest first. */
  readonly recent: readonly Firing[];
  /** The ids of the batches that run, but those started with `allow-all`, of which the server keeps no account. */
  readonly running: readonly string[];
  readonly counts: {
    readonly started: number;
    /** Firings that were left out because a batch was running. */
    readonly skipped: number;
    /** Firings that would have come later than the catch-up window. */
    readonly missed: number;
  };
}

/** A schedule as a list has it. */
export interface ListedSchedule {
  readonly scheduleId: string;
  readonly paused: boolean;
  readonly note: string | null;
  readonly timing: readonly Timing[];
  readonly timezone: string;
  /** At most 5. */
  readonly next: readonly string[];
  readonly last: Firing | null;
}

export async function descriptionOf(
  batches: BatchClient,
  schedule: TemporalSchedule,
): Promise<ScheduleDescription> {
  const { scheduleId, state, info } = schedule;
  const { settings, items } = definitionOf(schedule);
  const jobs = new Set(items.map(({ request }) => JSON.stringify([request.projectId, request.jobId])));
  const recent = await Promise.all(info.recentActions.map((action) => firingOf(batches, action)));
  return {
    scheduleId,
    paused: state.paused,
    note: noteOf(state.note),
    settings,
    items: {
      count: items.length,
      projects: new Set(items.map(({ request }) => request.projectId)).size,
      jobs: jobs.size,
      digest: itemsDigest(items),
    },
    createdAt: info.createdAt.toISOString(),
    updatedAt: info.lastUpdatedAt?.toISOString() ?? null,
    next: timesOf(state.paused, info.nextActionTimes),
    recent: recent.reverse(),
    running: info.runningActions.map(({ workflow }) => batchIdOfFiring(workflow.workflowId)),
    counts: {
      started: info.numActionsTaken,
      skipped: info.numActionsSkippedOverlap,
      missed: info.numActionsMissedCatchupWindow,
    },
  };
}

export async function listedOf(
  batches: BatchClient,
  { scheduleId, state, spec, info }: Listed,
): Promise<ListedSchedule> {
  const last = info.recentActions.at(-1);
  return {
    scheduleId,
    paused: state.paused,
    note: noteOf(state.note),
    timing: timingsOf(spec ?? {}),
    timezone: timezoneOf(spec),
    next: timesOf(state.paused, info.nextActionTimes),
    last: last === undefined ? null : await firingOf(batches, last),
  };
}

/** The server goes on telling when a paused schedule would fire. */
function timesOf(paused: boolean, times: readonly Date[]): string[] {
  return paused ? [] : times.map((time) => time.toISOString());
}

function noteOf(note: string | undefined): string | null {
  return note === undefined || note === '' ? null : note;
}
