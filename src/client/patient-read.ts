import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import { optionalTsToDate } from '@temporalio/common/lib/time';
import type { FollowUpActivities, Tally } from '../contract/activities';
import { MAX_SERVICE_MESSAGE_CHARACTERS, MAX_STATUS_CHARACTERS, truncate } from '../contract/bounds';
import { isRecord } from '../contract/field-reader';
import type { FollowUpProgress, Phase } from '../contract/progress';
import { addCounts } from '../polling/observed';

const PATIENT_READ: keyof FollowUpActivities = 'getJobPatiently';

/** The phases in which a read may poll by its own retries. */
const PATIENT_PHASES: readonly Phase[] = ['waiting', 'watching', 'needs-decision'];

/** The server's own answers need no worker. */
const CALL_TIMEOUT_MS = 5_000;

/** A tally has 32 names of answers at most, and `other`. */
const MAX_NAMES = 33;

/** What the follow-up's own count will get of a read that polls by its own retries. */
type Counted = Pick<Tally, 'polls' | 'observed' | 'lastAnswer'>;

type PendingActivity = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

/** Whether a read that polls by its own retries may have been under way when the worker told this progress. */
export function mayBeReadPatiently({ phase, nextPollAt }: FollowUpProgress): boolean {
  return nextPollAt === null && PATIENT_PHASES.includes(phase);
}

/**
 * The progress with what the server alone knows: the answers of a read that polls by its own retries, which the
 * workflow counts at its end, and when it reads next, by the server's clock.
 *
 * Nothing is counted twice: an activity that is pending after the workflow has answered was not counted in that answer.
 *
 * @param progress as the worker has just told it
 * @returns undefined where no such read is pending: it has ended since, or there was none
 */
export async function withPatientRead(
  client: Client,
  workflowId: string,
  progress: FollowUpProgress,
): Promise<FollowUpProgress | undefined> {
  const { raw } = await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
    client.workflow.getHandle(workflowId).describe(),
  );
  const pending = raw.pendingActivities?.find(({ activityType }) => activityType?.name === PATIENT_READ);
  if (pending === undefined) return undefined;
  const nextPollAt = nextReadAt(pending);
  const counted = await countedBy(client, workflowId, pending);
  if (counted === null || counted.polls === 0) return { ...progress, nextPollAt };
  const lastAnswer = counted.lastAnswer ?? progress.lastAnswer;
  // What is read before the send is no poll, and no receipt counts it.
  if (progress.phase === 'waiting') return { ...progress, nextPollAt, lastAnswer };
  const polls = progress.polls + counted.polls;
  const observed = addCounts(progress.observed, counted.observed);
  return { ...progress, nextPollAt, lastAnswer, polls, observed };
}

/** A moment that has passed where the attempt is under way or waits for a worker; null while an operator has paused it. */
function nextReadAt({ paused, nextAttemptScheduleTime, scheduledTime }: PendingActivity): string | null {
  if (paused === true) return null;
  return optionalTsToDate(nextAttemptScheduleTime ?? scheduledTime)?.toISOString() ?? null;
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
  const context = { type: 'activity', namespace, workflowId, isLocal: false } as const;
  return countedIn(await decodeFromPayloadsAtIndex(loadedDataConverter, 0, payloads, context));
}

/** What heartbeat details tell of the reads, bounded; null where they are no tally. */
export function countedIn(details: unknown): Counted | null {
  if (!isRecord(details)) return null;
  const { polls, observed, lastAnswer } = details;
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
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
