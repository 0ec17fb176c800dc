import { type Client, type WorkflowExecutionDescription, WorkflowNotFoundError } from '@temporalio/client';
import {
  activityContext,
  decodeFromPayloadsAtIndex,
  optionalTsToDate,
  PENDING_ACTIVITY_STARTED,
  workersPolling,
} from '../temporal/sdk-internals';
import type { FollowUpActivities, Tally } from '../core/activities';
import { isRecord } from '../core/json';
import { QUERY_PROGRESS } from '../core/names';
import type { FollowUpProgress, Phase } from '../core/result';
import { addCounts } from '../core/tally';
import { MAX_SERVICE_MESSAGE_CHARACTERS, MAX_STATUS_CHARACTERS, truncate } from '../core/text';
import { describeFollowUp, type FollowUpDescription } from './description';
import { followUpNotFound } from './errors';

/** Where a follow-up stands, and who says so. */
export type ProgressReport =
  | { readonly from: 'worker'; readonly progress: FollowUpProgress }
  | {
      /** No worker answered in time; this is what the server knows. */
      readonly from: 'server';
      readonly description: FollowUpDescription;
      /** Workers that poll the task queue of the follow-up. With none, the follow-up waits; nothing is lost. */
      readonly workers: number;
    };

/** A worker answers a query within milliseconds; one that has to replay a long history first, within a second. */
export const QUERY_TIMEOUT_MS = 3_000;

export interface ProgressOptions {
  /** How long a worker is waited for, in milliseconds. @default 3000 */
  readonly timeoutMs?: number;
}

/** The server's own answers need no worker. */
const CALL_TIMEOUT_MS = 5_000;

/**
 * Where a follow-up stands: by its worker and, while an activity polls on, by what the server knows of
 * that; by the server alone when no worker answers in time.
 *
 * @throws NotFoundError; ServiceError when the server does not answer either
 */
export async function readProgress(
  client: Client,
  workflowId: string,
  { timeoutMs = QUERY_TIMEOUT_MS }: ProgressOptions = {},
): Promise<ProgressReport> {
  try {
    return { from: 'worker', progress: await askWorker(client, workflowId, timeoutMs) };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) {
      throw followUpNotFound(workflowId, client.options.namespace);
    }
    // Whatever else it is (no worker, a busy one, one without this query), the server may still know something; when
    // it does not answer either, its error is thrown from here.
    const description = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      describeFollowUp(client, workflowId),
    );
    const workers = await workersPolling(client, description.taskQueue, CALL_TIMEOUT_MS);
    return { from: 'server', description, workers: workers.length };
  }
}

/** An activity that polls on may end between the two questions; it is then asked once more. */
const MAX_QUESTIONS = 2;

/** The worker's answer, with what a pending activity that polls on has counted so far. */
async function askWorker(client: Client, workflowId: string, timeoutMs: number): Promise<FollowUpProgress> {
  for (let question = 1; ; question += 1) {
    const progress = await client.withDeadline(Date.now() + timeoutMs, () =>
      client.workflow.getHandle(workflowId).query<FollowUpProgress>(QUERY_PROGRESS),
    );
    if (!mayBePolling(progress)) return progress;
    const whole = await withPendingPoll(client, workflowId, progress);
    if (whole !== undefined) return whole;
    if (question === MAX_QUESTIONS) return progress;
  }
}

const POLL_ACTIVITY: keyof FollowUpActivities = 'pollJob';

/** The phases in which an activity may poll by itself. */
const POLLING_PHASES: readonly Phase[] = ['waiting', 'watching', 'needs-decision'];

/** The largest difference between the clocks of worker and server that is allowed for. */
const CLOCKS_DIFFER_MS = 1_000;

/** A tally has 32 names of answers at most, and `other`. */
const MAX_NAMES = 33;

/** What the follow-up's own count will get of an activity that polls. */
type Counted = Pick<Tally, 'polls' | 'observed' | 'lastAnswer' | 'nextReadAt'>;

type PendingActivity = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

/** Whether an activity may have been polling when the worker answered: then the time of its next read has passed. */
export function mayBePolling({ phase, nextPollAt }: FollowUpProgress): boolean {
  const planned = nextPollAt !== null && Date.parse(nextPollAt) > Date.now();
  return !planned && POLLING_PHASES.includes(phase);
}

/**
 * The progress with what the server alone knows of an activity that polls: the answers that the workflow counts at its end,
 * and when it reads next. Of one that polls in its worker's process this is up to 24 s old (its heartbeats), and the time
 * of the next read is null where the known one has passed.
 *
 * Nothing is counted twice: an activity that is pending after the workflow has answered was not counted in that answer.
 *
 * @param progress the worker's latest answer
 * @returns undefined if no such activity is pending
 */
export async function withPendingPoll(
  client: Client,
  workflowId: string,
  progress: FollowUpProgress,
): Promise<FollowUpProgress | undefined> {
  const { raw } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    client.workflow.getHandle(workflowId).describe(),
  );
  const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === POLL_ACTIVITY);
  if (pending === undefined) return undefined;
  const counted = await countedBy(client, workflowId, pending);
  const nextPollAt = nextReadAt(pending, counted);
  if (counted === null || counted.polls === 0) return { ...progress, nextPollAt };
  const lastAnswer = counted.lastAnswer ?? progress.lastAnswer;
  // A read before the send is not a poll, and no receipt counts it.
  if (progress.phase === 'waiting') return { ...progress, nextPollAt, lastAnswer };
  const polls = progress.polls + counted.polls;
  const observed = addCounts(progress.observed, counted.observed);
  return { ...progress, nextPollAt, lastAnswer, polls, observed };
}

/** A moment that has passed where an attempt waits for a worker; null while an operator has paused it. */
function nextReadAt(
  { paused, state, nextAttemptScheduleTime, scheduledTime, lastStartedTime }: PendingActivity,
  counted: Counted | null,
): string | null {
  if (paused === true) return null;
  if (Number(state) !== PENDING_ACTIVITY_STARTED) {
    return optionalTsToDate(nextAttemptScheduleTime ?? scheduledTime)?.toISOString() ?? null;
  }
  const { nextReadAt: at = null } = counted ?? {};
  if (at === null) return null;
  // The read for which the attempt was made, or one that is still to come; others have been made since the last heartbeat.
  const startedAt = optionalTsToDate(lastStartedTime)?.getTime() ?? 0;
  return at > Date.now() || at <= startedAt + CLOCKS_DIFFER_MS ? new Date(at).toISOString() : null;
}

async function countedBy(
  client: Client,
  workflowId: string,
  { heartbeatDetails }: PendingActivity,
): Promise<Counted | null> {
  const payloads = heartbeatDetails?.payloads;
  if (!payloads || payloads.length === 0) return null;
  const { namespace, loadedDataConverter } = client.options;
  // As the worker has encoded it, so that payload codecs of the caller apply.
  const context = activityContext(namespace, workflowId);
  return countedIn(await decodeFromPayloadsAtIndex(loadedDataConverter, 0, payloads, context));
}

/** The counts in heartbeat details, bounded; null if they are not a tally. */
export function countedIn(details: unknown): Counted | null {
  if (!isRecord(details)) return null;
  const { polls, observed, lastAnswer, nextReadAt } = details;
  if (!isCount(polls) || !isRecord(observed)) return null;
  const counts: [string, number][] = [];
  for (const [name, count] of Object.entries(observed)) {
    if (!isCount(count) || counts.length === MAX_NAMES) return null;
    counts.push([truncate(name, MAX_STATUS_CHARACTERS), count]);
  }
  return {
    polls,
    observed: Object.fromEntries(counts),
    lastAnswer: typeof lastAnswer === 'string' ? truncate(lastAnswer, MAX_SERVICE_MESSAGE_CHARACTERS) : null,
    nextReadAt: isCount(nextReadAt) ? nextReadAt : null,
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
