import type { ScheduleExecutionResult } from '@temporalio/client';
import type { BatchSummary } from '../../contract/batch';
import type { BatchClient, BatchOutcome } from '../batch/batch-client';
import { BatchNotFoundError } from '../errors';
import { batchIdOfFiring } from './schedule-id';

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

const UNTOLD = { items: null, settled: null, failures: null, message: null } as const;

/** A firing with its end, as the batch's own result tells it; no worker is needed. */
export async function firingOf(
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
  try {
    if ((await batches.describe(workflowId)).state === 'running')
      return { ...firing, ...UNTOLD, state: 'running' };
    const { state, summary, message } = await batches.outcome(workflowId);
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
