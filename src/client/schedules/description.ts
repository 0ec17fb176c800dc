import type {
  ScheduleDescription as TemporalSchedule,
  ScheduleExecutionResult,
  ScheduleSummary,
} from '@temporalio/client';
import type { BatchSummary } from '../../core/batch';
import type { BatchClient } from '../batch/batch-client';
import type { BatchOutcome } from '../batch/batch-handle';
import { itemsDigest } from '../batch/identity';
import { BatchNotFoundError } from '../errors';
import { batchIdOfFiring, inputOf, itemsOf } from './action';
import { type ScheduleSettings, settingsOf, timezoneOf } from './settings';
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

/** A batch that a schedule has started, and what became of it. */
export interface Firing {
  readonly batchId: string;
  readonly workflowId: string;
  /** When it was due, jitter included; for a backfill, the time in the past. */
  readonly scheduledAt: string;
  /** When it was started. */
  readonly takenAt: string;
  /** `gone`: its end is older than the retention of the namespace, or somebody has deleted it. */
  readonly state: 'running' | 'gone' | BatchOutcome['state'];
  /** Null while it runs, and where it was terminated or is gone. */
  readonly items: number | null;
  readonly settled: number | null;
  readonly failures: number | null;
  /** What went wrong, in words. */
  readonly message: string | null;
}

export async function descriptionOf(
  batches: BatchClient,
  schedule: TemporalSchedule,
): Promise<ScheduleDescription> {
  const { scheduleId, state, info } = schedule;
  const items = itemsOf(schedule.action);
  const jobs = new Set(items.map(({ request }) => JSON.stringify([request.projectId, request.jobId])));
  const recent = await Promise.all(info.recentActions.map((action) => firingOf(batches, action)));
  return {
    scheduleId,
    paused: state.paused,
    note: noteOf(state.note),
    settings: settingsOf(schedule, inputOf(schedule.action)),
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
  { scheduleId, state, spec, info }: ScheduleSummary,
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

const UNTOLD = { items: null, settled: null, failures: null, message: null } as const;

/** A firing with its end, as the batch's own result tells it; no worker is needed. */
async function firingOf(
  batches: BatchClient,
  { action, scheduledAt, takenAt }: ScheduleExecutionResult,
): Promise<Firing> {
  const { workflowId } = action.workflow;
  const firing = {
    batchId: batchIdOfFiring(workflowId),
    workflowId,
    scheduledAt: scheduledAt.toISOString(),
    takenAt: takenAt.toISOString(),
  };
  const batch = batches.getHandle(workflowId);
  try {
    if ((await batch.describe()).state === 'running') return { ...firing, ...UNTOLD, state: 'running' };
    const { state, summary, message } = await batch.result();
    return { ...firing, ...UNTOLD, ...countsOf(summary), state, message };
  } catch (error) {
    if (!(error instanceof BatchNotFoundError)) throw error;
    return { ...firing, ...UNTOLD, state: 'gone' };
  }
}

function countsOf(summary: BatchSummary | null) {
  if (summary === null) return {};
  const { items, settled, byStatus, byFailure } = summary;
  // A failure, as the tolerance counts it: a typed one, a cancelled or terminated item, or a job that failed.
  const failures = Object.values(byFailure).reduce((sum, count) => sum + count, byStatus.failed ?? 0);
  return { items, settled, failures };
}

/** The server goes on telling when a paused schedule would fire. */
function timesOf(paused: boolean, times: readonly Date[]): string[] {
  return paused ? [] : times.map((time) => time.toISOString());
}

function noteOf(note: string | undefined): string | null {
  return note === undefined || note === '' ? null : note;
}
