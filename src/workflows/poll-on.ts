import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { PollJobResult, Tally, Trouble } from '../contract/activities';
import type { JobState } from '../contract/job';
import { NO_CHANGE } from '../contract/names';
import { needsDecision } from '../polling/tally';
import { pendingDetailsProxy, pollProxy, REPORT_MARGIN_MS } from './activity-proxies';
import { answerOfLostRead, type FollowUpContext, type TimedAnswer } from './context';

/** Reads by one activity that goes on polling until something needs a decision. */
export interface Poll {
  readonly summary: string;
  /** The job as it is known; another answer ends the poll. */
  readonly known: JobState;
  /** When the turn, or the wait for its beginning, began; milliseconds since the epoch. */
  readonly since: number;
  readonly trouble: Trouble;
  /** The wait before the first read, in milliseconds. */
  readonly firstWaitMs: number;
  /** Takes the answers by which nothing has changed: at most once, at the end, before the answer that ended it. */
  count(tally: Tally, askedAt: number): void;
  /** Takes a single answer: the one that ended the poll, or one of a read beside it. */
  take(answer: TimedAnswer): void;
}

/** How the activity has ended: with the answer that needs a decision, or with the last of those that need none. */
interface PollEnd {
  readonly tally: Tally | null;
  readonly answer: TimedAnswer | null;
}

/**
 * Polls by one activity: the second gear of every loop that reads. It ends by itself when an answer needs a decision, and
 * when its time is over, which is never after the deadline; by a decision of an operator; by a read beside it that needs
 * a decision; and by the cancellation of the workflow. In every case the answers that were reported are counted.
 *
 * @returns whether anything was read, or somebody wants the poll to end; a worker whose clock is wrong may end it at once
 */
export async function pollOn(context: FollowUpContext, poll: Poll): Promise<boolean> {
  const { plan, deadlineAt } = context.state;
  const { projectId, jobId, polling } = plan;
  const { known, since, trouble, summary, firstWaitMs } = poll;
  const { patienceMs, httpTimeoutMs } = context.settings;
  const askedAt = Date.now();
  const patientUntil = askedAt + firstWaitMs + Math.max(patienceMs, 4 * polling.maximumMs);
  const endsAt = Math.min(patientUntil, deadlineAt - httpTimeoutMs);
  const timeLimitMs = Math.min(deadlineAt, endsAt + httpTimeoutMs + REPORT_MARGIN_MS) - askedAt;
  const input = { projectId, jobId, known, since, polling, trouble, firstWaitMs, endsAt };

  const ended: PollEnd[] = [];
  // Not cancelled with the workflow, but by hand: what was counted must be asked for before.
  const scope = new CancellationScope({
    cancellable: true,
    parent: new CancellationScope({ cancellable: false }),
  });
  const polled = scope.run(async () => {
    const activity = pollProxy(context.settings, plan, timeLimitMs, summary);
    const end = await activity.pollJob(input).then(
      (result) => endByResult(result, askedAt),
      (error: unknown) => endByFailure(error, askedAt),
    );
    ended.push(end);
  });

  let beside: TimedAnswer | null = null;
  let read = false;
  context.reads = 'by-activity';
  context.state.nextPollAt = askedAt + firstWaitMs;
  context.show();
  try {
    while (beside === null) {
      await condition(() => ended.length > 0 || context.wanted);
      if (ended.length > 0 || context.decision !== null) break;
      const answer = await context.read(`${summary}: read now`);
      if (needsDecision(answer.answer, known)) beside = answer;
      else poll.take(answer);
      read = true;
      context.show();
    }
  } finally {
    context.reads = 'counting';
    context.state.nextPollAt = null;
    await CancellationScope.nonCancellable(async () => {
      const soFar = ended.length > 0 ? null : await countedSoFar();
      scope.cancel();
      await polled;
      const [end] = ended;
      // A worker may have answered in the meantime, and then its own count is the right one.
      const tally = end?.tally ?? soFar;
      read ||= (tally?.polls ?? 0) > 0 || Boolean(end?.answer) || context.decision !== null;
      if (tally !== null) poll.count(tally, askedAt);
      if (end?.answer) poll.take(end.answer);
      if (beside !== null) poll.take(beside);
    });
    context.reads = 'singly';
  }
  return read || beside !== null;
}

async function countedSoFar(): Promise<Tally | null> {
  try {
    return await pendingDetailsProxy.pendingDetails('pollJob');
  } catch (error) {
    if (error instanceof ActivityFailure) return null;
    throw error;
  }
}

function endByResult({ answer, before }: PollJobResult, askedAt: number): PollEnd {
  return { tally: before, answer: answer === null ? null : { answer, askedAt, receivedAt: Date.now() } };
}

function endByFailure(error: unknown, askedAt: number): PollEnd {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { tally: null, answer: null };
  if (cause instanceof ApplicationFailure && cause.type === NO_CHANGE) {
    return { tally: (cause.details?.[0] ?? null) as Tally | null, answer: null };
  }
  // The time was over with an attempt in its queue or under way. Only where none was ever answered is that an answer.
  if (cause instanceof TimeoutFailure && cause.lastHeartbeatDetails) {
    return { tally: cause.lastHeartbeatDetails as Tally, answer: null };
  }
  return { tally: null, answer: { answer: answerOfLostRead(error), askedAt, receivedAt: Date.now() } };
}
