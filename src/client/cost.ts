import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import { describeFollowUp, type FollowUpState } from './description';
import { FollowUpCancelledError, FollowUpEnd, FollowUpError } from './ends';
import { hasGrpcStatus } from './grpc-status';
import { type BillableActions, costOf, type HistoryEvent, isReset, sumActions } from './history-cost';
import { QUERY_TIMEOUT_MS, readProgress } from './progress';
import { awaitResult } from './result';

/** What a follow-up has cost so far, all its runs together. */
export interface FollowUpCost {
  readonly workflowId: string;
  readonly state: FollowUpState;
  /** More than one where it was continued as new or reset. */
  readonly runs: number;
  /** Runs before these are gone, as runs are when the namespace's retention has passed: their cost is not in here. */
  readonly earlierRunsGone: boolean;
  readonly events: number;
  /** The size of the history by the server's own count. */
  readonly bytes: number;
  readonly workflowTasks: number;
  /** Reads since the send; null where neither a receipt nor a worker tells. */
  readonly polls: number | null;
  /** Billable actions; those that no history shows are not among them, see `NOT_IN_HISTORY`. */
  readonly actions: BillableActions;
}

/** `PENDING_ACTIVITY_STATE_SCHEDULED` of Temporal's API: its attempt waits to begin, in a queue or in its back-off. */
const NOT_BEGUN = 1;

/**
 * Adds up what a follow-up has cost, from the first of its runs on.
 *
 * @throws FollowUpNotFoundError
 */
export async function readCost(client: Client, workflowId: string): Promise<FollowUpCost> {
  const { state, runId } = await describeFollowUp(client, workflowId);
  const runs: RunCost[] = [];
  let before: string | undefined = runId;
  // From the last run back, since each run names the one before it.
  while (before !== undefined) {
    const run = await readRun(client, workflowId, before);
    if (run === undefined) break;
    runs.push(run);
    before = run.runBefore;
  }
  const sum = (pick: (run: RunCost) => number): number => runs.reduce((total, run) => total + pick(run), 0);
  return {
    workflowId,
    state,
    runs: runs.length,
    earlierRunsGone: before !== undefined,
    events: sum(({ events }) => events),
    bytes: sum(({ bytes }) => bytes),
    workflowTasks: sum(({ workflowTasks }) => workflowTasks),
    polls: await pollsOf(client, workflowId, state),
    actions: sumActions(runs.map(({ actions }) => actions)),
  };
}

interface RunCost {
  readonly events: number;
  readonly bytes: number;
  readonly workflowTasks: number;
  readonly actions: BillableActions;
  readonly runBefore: string | undefined;
}

/** Undefined where the run is gone. */
async function readRun(client: Client, workflowId: string, runId: string): Promise<RunCost | undefined> {
  const handle = client.workflow.getHandle(workflowId, runId);
  try {
    const { events } = await handle.fetchHistory();
    const description = await handle.describe();
    const cost = costOf(events ?? []);
    return {
      ...cost,
      bytes: description.historySize ?? cost.bytes,
      actions: sumActions([cost.actions, { activityRetries: pendingRetries(description) }]),
      runBefore: runBefore(events ?? []),
    };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || hasGrpcStatus(error, 'NOT_FOUND')) return undefined;
    throw error;
  }
}

/** The run that this one continues, or was reset from. */
function runBefore(events: readonly HistoryEvent[]): string | undefined {
  const base = events.findLast(isReset)?.workflowTaskFailedEventAttributes?.baseRunId;
  const continued = events[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId;
  const runId = base ?? continued ?? '';
  return runId === '' ? undefined : runId;
}

/** The retries of activities that have not ended: history shows them only at the end. */
function pendingRetries({ raw }: WorkflowExecutionDescription): number {
  return (raw.pendingActivities ?? []).reduce((sum, { attempt, state }) => {
    const begun = (attempt ?? 1) - ((state as number) === NOT_BEGUN ? 1 : 0);
    return sum + Math.max(0, begun - 1);
  }, 0);
}

async function pollsOf(client: Client, workflowId: string, state: FollowUpState): Promise<number | null> {
  if (state === 'running') {
    const report = await readProgress(client, workflowId, QUERY_TIMEOUT_MS);
    return report.from === 'worker' ? report.progress.polls : null;
  }
  try {
    return (await awaitResult(client, workflowId)).followUp.polls;
  } catch (error) {
    if (error instanceof FollowUpError) return error.details.followUp.polls;
    if (error instanceof FollowUpCancelledError) return error.receipt?.polls ?? null;
    if (error instanceof FollowUpEnd) return null;
    throw error;
  }
}
