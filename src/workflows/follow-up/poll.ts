import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  TimeoutFailure,
} from '@temporalio/workflow';
import { isPollJobResult, isTally, type Tally } from '../../core/activities';
import type { JobState } from '../../core/job';
import { NO_CHANGE } from '../../core/names';
import { addCounts, countsAfter, isUnauthorized, needsDecision } from '../../core/tally';
import type { Polling } from '../../core/request';
import { CancelledByHand, pendingDetails, pollJob, REPORT_MARGIN_MS } from '../activity-proxies';
import { answerOfLostRead, type FollowUpContext, FOREIGN_READ, type TimedAnswer } from './context';
import { lastAnswerOf, record, type Watch } from './state';

interface NextRead {
  readonly waitMs: number;
  /** The summary of the timer before it. */
  readonly why: string;
  /** The summary of the read. @default poll N */
  readonly summary?: string;
  /** The read is a single one, whatever may come after it. @default false */
  readonly single?: boolean;
}

/** Waits and reads once, unless an operator decides meanwhile; or, while nothing changes, has one activity read on. */
export async function readNext(
  context: FollowUpContext,
  watch: Watch,
  { waitMs, why, summary = `poll ${watch.polls + 1}`, single = false }: NextRead,
): Promise<void> {
  const { state } = context;
  const { last } = watch;
  const firstWaitMs = context.withinHistoryBudget(waitMs);
  // A poll that fails slowly must end before the deadline, at which the last read is a single one.
  const hasTime = state.deadlineAt - Date.now() > firstWaitMs + 2 * context.settings.httpTimeoutMs;
  const mayGoOn = hasTime && !single && !context.wanted && mayPollOn(state.plan.polling, watch);
  if (mayGoOn && last !== null && (await pollOn(context, watch, last, firstWaitMs, summary))) return;
  await context.pause(waitMs, why);
  if (context.decision === null) take(watch, await context.read(summary));
}

/** Whether an activity may poll on: after the first polls, while the job stays as it is and the service is only late at most. */
export function mayPollOn({ timerPolls }: Polling, { polls, steady, trouble }: Watch): boolean {
  if (timerPolls === 'all' || polls < timerPolls) return false;
  return steady && trouble.notFound === null && !isUnauthorized(trouble);
}

function take(watch: Watch, { answer, askedAt, receivedAt }: TimedAnswer): void {
  Object.assign(watch, countsAfter(watch, answer, receivedAt));
  if (answer.kind === 'job') record(watch, answer.job, askedAt, receivedAt);
}

function takeTally({ state }: FollowUpContext, watch: Watch, tally: Tally): void {
  state.lastAnswer = tally.lastAnswer ?? state.lastAnswer;
  watch.polls += tally.polls;
  watch.observed = addCounts(watch.observed, tally.observed);
  if (tally.polls > 0) watch.trouble = tally.trouble;
}

export function lastAnswerInWords({ state }: FollowUpContext): string {
  const polls = state.watch?.polls ?? 0;
  return `${polls === 0 ? 'sent' : `poll ${polls}`}: ${lastAnswerOf(state) ?? 'no answer yet'}`;
}

interface PollEnd {
  readonly tally?: Tally;
  readonly answer?: TimedAnswer | null;
}

/**
 * Polls by one activity. It ends when an answer needs a decision or its time is up; by a decision of an operator, a read
 * beside it that needs a decision, or the cancellation of the workflow. What was reported is counted.
 *
 * @param known another answer about the job ends the poll
 * @returns whether anything was read, or somebody wants the poll to end; a worker whose clock is wrong may end it at once
 */
async function pollOn(
  context: FollowUpContext,
  watch: Watch,
  known: JobState,
  firstWaitMs: number,
  readSummary: string,
): Promise<boolean> {
  const summary = `${readSummary} and on, until ${known.status} changes`;
  const { plan, deadlineAt } = context.state;
  const { projectId, jobId, polling } = plan;
  const { since, trouble } = watch;
  const hearAndTake = (answer: TimedAnswer) => {
    context.heard(answer.answer);
    take(watch, answer);
  };
  const { pollLimitMs, httpTimeoutMs } = context.settings;
  const askedAt = Date.now();
  const limitAt = askedAt + firstWaitMs + Math.max(pollLimitMs, 4 * polling.maximumMs);
  const endsAt = Math.min(limitAt, deadlineAt - httpTimeoutMs);
  const timeLimitMs = Math.min(deadlineAt, endsAt + httpTimeoutMs + REPORT_MARGIN_MS) - askedAt;
  const input = { projectId, jobId, known, since, polling, trouble, firstWaitMs, endsAt };
  const poll = new CancelledByHand<PollEnd>(() =>
    pollJob(context.settings, input, timeLimitMs, summary).then(
      (result: unknown) => endByResult(result, askedAt),
      (error: unknown) => endByFailure(error, askedAt),
    ),
  );

  let beside: TimedAnswer | null = null;
  let read = false;
  context.setReads('by-activity', askedAt + firstWaitMs);
  context.show();
  try {
    while (beside === null) {
      await condition(() => poll.end !== undefined || context.wanted);
      if (poll.end !== undefined || context.decision !== null) break;
      const answer = await context.read(`${summary}: read now`);
      if (needsDecision(answer.answer, known)) beside = answer;
      else hearAndTake(answer);
      read = true;
      context.show();
    }
  } finally {
    context.setReads('counting');
    await CancellationScope.nonCancellable(async () => {
      const recorded = poll.end === undefined ? (await pendingDetails('pollJob'))?.details : null;
      if (poll.end === undefined) context.touch();
      poll.cancel();
      await poll.done;
      const { tally, answer = null } = poll.end ?? {};
      // A worker may have answered in the meantime, and then its own count is the right one.
      const count = tally ?? (isTally(recorded) ? recorded : null);
      read ||= (count?.polls ?? 0) > 0 || answer !== null || context.decision !== null;
      if (count !== null) takeTally(context, watch, count);
      for (const each of [answer, beside]) if (each !== null) hearAndTake(each);
    });
    context.setReads('singly');
  }
  return read;
}

/** @param begunAt when the activity began: it asked for no answer before that */
function endByResult(result: unknown, begunAt: number): PollEnd {
  const receivedAt = Date.now();
  if (!isPollJobResult(result)) return { answer: { answer: FOREIGN_READ, askedAt: begunAt, receivedAt } };
  const { answer, before } = result;
  const askedAt = Math.max(begunAt, Math.min(result.askedAt, receivedAt));
  return { tally: before, answer: answer && { answer, askedAt, receivedAt } };
}

function endByFailure(error: unknown, askedAt: number): PollEnd {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return {};
  if (cause instanceof ApplicationFailure && cause.type === NO_CHANGE) {
    const tally: unknown = cause.details?.[0];
    return isTally(tally) ? { tally } : {};
  }
  // The time was over with an attempt in its queue or under way. Only where none was ever answered is that an answer.
  if (cause instanceof TimeoutFailure && isTally(cause.lastHeartbeatDetails))
    return { tally: cause.lastHeartbeatDetails };
  return { answer: { answer: answerOfLostRead(error), askedAt, receivedAt: Date.now() } };
}
