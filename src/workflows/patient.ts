import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { PatientAnswer, Tally, Trouble } from '../contract/activities';
import type { JobState } from '../contract/job';
import { NO_CHANGE } from '../contract/names';
import { patientReadProxy, pendingDetailsProxy } from './activity-proxies';
import { needsDecision } from '../polling/tally';
import { answerOfLostRead, type FollowUpContext, type TimedAnswer } from './context';

/** Reads by one activity that polls by its own retries, until something needs a decision. */
export interface Patience {
  readonly summary: string;
  /** The job as it is known; another answer ends the patience. */
  readonly known: JobState;
  /** When the turn, or the wait for its beginning, began; milliseconds since the epoch. */
  readonly since: number;
  readonly trouble: Trouble;
  /** Takes the answers by which nothing has changed: at most once, at the end, before the answer that ended it. */
  count(tally: Tally, askedAt: number): void;
  /** Takes a single answer: the one that ended the patience, or one of a read beside it. */
  take(timed: TimedAnswer): void;
}

/**
 * How an activity that polls by its own retries has ended: with the answer that needs a decision, or with the last of
 * those by which nothing has changed.
 */
interface End {
  readonly tally: Tally | null;
  readonly timed: TimedAnswer | null;
}

/**
 * Polls patiently: the second gear of every loop that reads. It ends by itself when an answer needs a decision, and
 * when its patience is over, which is never after the deadline; by a decision of an operator; by a read beside it that
 * needs a decision; and by the cancellation of the workflow. In every case the answers that were reported are counted,
 * except one at most that comes between the question for the count and the cancellation.
 */
export async function readPatiently(context: FollowUpContext, patience: Patience): Promise<void> {
  const { plan } = context.state;
  const { projectId, jobId, polling } = plan;
  const { known, since, trouble, summary } = patience;
  const askedAt = Date.now();
  const input = { projectId, jobId, known, since, polling, trouble };
  const leftMs = Math.max(1, context.state.deadlineAt - askedAt);

  const ended: End[] = [];
  // Not cancelled with the workflow, but by hand: what was counted must be asked for before.
  const scope = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });
  const reading = scope.run(async () => {
    const activity = patientReadProxy(context.settings, plan, leftMs, summary);
    const end = await activity.getJobPatiently(input).then(
      (answer) => endByAnswer(answer, askedAt),
      (error: unknown) => endByFailure(error, askedAt),
    );
    ended.push(end);
  });

  let beside: TimedAnswer | null = null;
  context.reads = 'patiently';
  context.show();
  try {
    while (beside === null) {
      await condition(() => ended.length > 0 || context.wanted);
      if (ended.length > 0 || context.decision !== null) break;
      const timed = await context.read(`${summary}: read now`);
      if (needsDecision(timed.answer, known)) beside = timed;
      else patience.take(timed);
      context.show();
    }
  } finally {
    context.reads = 'counting';
    await CancellationScope.nonCancellable(async () => {
      const soFar = ended.length > 0 ? null : await countedSoFar();
      scope.cancel();
      await reading;
      const [end] = ended;
      // A worker may have answered in the meantime, and then its own count is the right one.
      const tally = end?.tally ?? soFar;
      if (tally !== null) patience.count(tally, askedAt);
      if (end?.timed) patience.take(end.timed);
      if (beside !== null) patience.take(beside);
    });
    context.reads = 'singly';
  }
}

async function countedSoFar(): Promise<Tally | null> {
  try {
    return await pendingDetailsProxy.pendingDetails('getJobPatiently');
  } catch (error) {
    if (error instanceof ActivityFailure) return null;
    throw error;
  }
}

function endByAnswer({ answer, before }: PatientAnswer, askedAt: number): End {
  return { tally: before, timed: { answer, askedAt, receivedAt: Date.now() } };
}

function endByFailure(error: unknown, askedAt: number): End {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { tally: null, timed: null };
  if (cause instanceof ApplicationFailure && cause.type === NO_CHANGE) {
    return { tally: (cause.details?.[0] ?? null) as Tally | null, timed: null };
  }
  // The time was over with an attempt in its queue or under way. Only where none was ever answered is that an answer.
  if (cause instanceof TimeoutFailure && cause.lastHeartbeatDetails) {
    return { tally: cause.lastHeartbeatDetails as Tally, timed: null };
  }
  return { tally: null, timed: { answer: answerOfLostRead(error), askedAt, receivedAt: Date.now() } };
}
