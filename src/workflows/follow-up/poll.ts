import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { Tally, Trouble } from '../../core/activities';
import { isPollJobResult, isTally } from '../../core/wire-checks';
import { afterRead } from '../../core/evidence';
import { jobState, type JobState, sameState } from '../../core/job';
import { NO_CHANGE } from '../../core/names';
import { addCounts, afterReading, countAnswer, labelOf, needsDecision } from '../../core/tally';
import { pendingDetails, pollProxy, REPORT_MARGIN_MS } from '../activity-proxies';
import { answerOfLostRead, type FollowUpContext, FOREIGN_READ, type TimedAnswer } from './context';
import { lastAnswerOf, type Watch } from './state';
import { mayPollOn } from './watch-step';

/** One read: it is counted, and what it shows is kept as evidence. */
export async function readAndRecord(
  context: FollowUpContext,
  watch: Watch,
  summary = `poll ${watch.polls + 1}`,
): Promise<void> {
  take(watch, await context.read(summary));
}

/** How the next read is made: when, and what the Web UI shows of it. */
interface NextRead {
  readonly waitMs: number;
  /** The summary of the timer before it. */
  readonly why: string;
  /** The summary of the read. @default poll N */
  readonly summary?: string;
  /** The read is a single one, whatever may come after it. @default false */
  readonly single?: boolean;
}

/**
 * Waits and reads once; or, while nothing changes, has one activity wait and read on until the job has moved or something
 * else needs a decision. Where an operator decides during the wait, nothing is read.
 */
export async function readNext(
  context: FollowUpContext,
  watch: Watch,
  { waitMs, why, summary = `poll ${watch.polls + 1}`, single = false }: NextRead,
): Promise<void> {
  const { state } = context;
  const { last: known } = watch;
  const firstWaitMs = context.withinHistoryBudget(waitMs);
  const readOnce = async () => {
    await context.pause(waitMs, why);
    if (context.decision === null) await readAndRecord(context, watch, summary);
  };
  if (single || known === null || !mayPollOn(state.plan.polling, watch) || !context.mayPollOn(firstWaitMs)) {
    await readOnce();
    return;
  }
  const hasRead = await pollOn(context, {
    summary: `${summary} and on, until ${known.status} changes`,
    known,
    since: watch.since,
    trouble: watch.trouble,
    firstWaitMs,
    count: (tally) => {
      count(watch, tally);
      state.lastAnswer = tally.lastAnswer ?? state.lastAnswer;
    },
    take: (answer) => {
      context.note(answer.answer);
      take(watch, answer);
    },
  });
  if (!hasRead) await readOnce();
}

function take(watch: Watch, { answer, askedAt, receivedAt }: TimedAnswer): void {
  watch.polls += 1;
  watch.observed = countAnswer(watch.observed, labelOf(answer));
  watch.trouble = afterReading(watch.trouble, answer, receivedAt);
  if (answer.kind === 'job') record(watch, answer.job, askedAt, receivedAt);
}

/** The answers of an activity by which nothing has changed: they show what was known before, and count as polls. */
function count(watch: Watch, tally: Tally): void {
  watch.polls += tally.polls;
  watch.observed = addCounts(watch.observed, tally.observed);
  if (tally.polls > 0) watch.trouble = tally.trouble;
}

/** Keeps an answer about the job as evidence. */
export function record(watch: Watch, job: JobState, askedAt: number, receivedAt: number): void {
  watch.steady = watch.last !== null && sameState(watch.last, job);
  watch.last = jobState(job);
  watch.observations = afterRead(watch.observations, { job, askedAt, receivedAt });
}

/** The last answer, for the summary of the timer that follows it. */
export function lastAnswerInWords({ state }: FollowUpContext): string {
  const polls = state.watch?.polls ?? 0;
  return `${polls === 0 ? 'sent' : `poll ${polls}`}: ${lastAnswerOf(state) ?? 'no answer yet'}`;
}

/** Reads by one activity that goes on polling until something needs a decision. */
interface Poll {
  readonly summary: string;
  /** The job as it is known; another answer ends the poll. */
  readonly known: JobState;
  /** When the turn, or the wait for its beginning, began; milliseconds since the epoch. */
  readonly since: number;
  readonly trouble: Trouble;
  /** The wait before the first read, in milliseconds. */
  readonly firstWaitMs: number;
  /** Takes the answers by which nothing has changed: at most once, at the end, before the answer that ended it. */
  count(tally: Tally): void;
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
 * when its time is up, which is never after the deadline; by a decision of an operator; by a read beside it that needs
 * a decision; and by the cancellation of the workflow. In every case the answers that were reported are counted.
 *
 * @returns whether anything was read, or somebody wants the poll to end; a worker whose clock is wrong may end it at once
 */
async function pollOn(context: FollowUpContext, poll: Poll): Promise<boolean> {
  const { plan, deadlineAt } = context.state;
  const { projectId, jobId, polling } = plan;
  const { known, since, trouble, summary, firstWaitMs } = poll;
  const { pollLimitMs, httpTimeoutMs } = context.settings;
  const askedAt = Date.now();
  const limitAt = askedAt + firstWaitMs + Math.max(pollLimitMs, 4 * polling.maximumMs);
  const endsAt = Math.min(limitAt, deadlineAt - httpTimeoutMs);
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
      (result: unknown) => endByResult(result, askedAt),
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
      if (tally !== null) poll.count(tally);
      if (end?.answer) poll.take(end.answer);
      if (beside !== null) poll.take(beside);
    });
    context.reads = 'singly';
  }
  return read || beside !== null;
}

async function countedSoFar(): Promise<Tally | null> {
  const tally = (await pendingDetails('pollJob'))?.details;
  return isTally(tally) ? tally : null;
}

/** @param begunAt when the activity began: it asked for no answer before that */
function endByResult(result: unknown, begunAt: number): PollEnd {
  const receivedAt = Date.now();
  if (!isPollJobResult(result))
    return { tally: null, answer: { answer: FOREIGN_READ, askedAt: begunAt, receivedAt } };
  const { answer, before } = result;
  const askedAt = Math.max(begunAt, Math.min(result.askedAt, receivedAt));
  return { tally: before, answer: answer && { answer, askedAt, receivedAt } };
}

function endByFailure(error: unknown, askedAt: number): PollEnd {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof CancelledFailure) return { tally: null, answer: null };
  if (cause instanceof ApplicationFailure && cause.type === NO_CHANGE) {
    const tally: unknown = cause.details?.[0];
    return { tally: isTally(tally) ? tally : null, answer: null };
  }
  // The time was over with an attempt in its queue or under way. Only where none was ever answered is that an answer.
  if (cause instanceof TimeoutFailure && isTally(cause.lastHeartbeatDetails)) {
    return { tally: cause.lastHeartbeatDetails, answer: null };
  }
  return { tally: null, answer: { answer: answerOfLostRead(error), askedAt, receivedAt: Date.now() } };
}
