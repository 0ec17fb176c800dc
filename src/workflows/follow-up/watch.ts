import { continueAsNew } from '@temporalio/workflow';
import { nextWait, waitUntil } from '../../core/cadence';
import { belief, idleUntil, type Observations } from '../../core/evidence';
import { type AgentJob, isTerminal } from '../../core/job';
import type { FollowUpResult, Phase } from '../../core/result';
import { isLost, isUnauthorized } from '../../core/tally';
import { formatDuration } from '../../core/units';
import type { FollowUpContext } from './context';
import { lostJob, overdue, refuseAfterDeadline } from './failures';
import { lastAnswerInWords, readNext } from './poll';
import { type ContinuedFollowUp, type FollowUpState, newWatch, record, type Watch } from './state';

/** Watches the job until its terminal status is believed and its link has settled. */
export async function watchJob(context: FollowUpContext, watch: Watch): Promise<AgentJob> {
  const { state } = context;
  for (;;) {
    const step = nextStep(state, watch, Date.now(), context.lastAskedAt);
    if (step === 'lost') throw lostJob(state);
    if (step === 'overdue') throw overdue(state);
    state.evidence = step.evidence;
    if (step.kind === 'settled') {
      if (state.job === null) throw new TypeError('a job was believed that was never seen');
      return state.job;
    }

    context.enter(step.phase);
    if (context.mayContinueAsNew)
      await continueAsNew<(next: ContinuedFollowUp) => Promise<FollowUpResult>>({ continued: state });
    const { waitMs, single } = step;
    const why = `${lastAnswerInWords(context)}, next in ${formatDuration(waitMs)}`;
    await readNext(context, watch, { waitMs, why, single });
  }
}

/**
 * Decides by what was seen so far, without a clock or a service. Only the lengths of its waits are random.
 *
 * @param watch what was read since the POST
 * @param lastAskedAt when the latest read, answered or not, was asked for: one asked for at the deadline is the last
 */
export function nextStep(
  { plan, deadlineAt }: Pick<FollowUpState, 'plan' | 'deadlineAt'>,
  watch: Watch,
  now: number,
  lastAskedAt: number,
) {
  const { observations, trouble, last } = watch;
  const { evidence, until = observations.freshFrom } = belief(observations, plan.confirmMs);
  // Unless `single`, an activity may read on until the job changes.
  const read = (phase: Phase, waitMs: number, single = true) =>
    ({
      kind: 'wait',
      phase: isUnauthorized(trouble) ? 'unauthorized' : phase,
      waitMs,
      single,
      evidence,
    }) as const;

  if (evidence !== null) {
    const settledAt = settleEnd(observations, plan.settleMs);
    if (settledAt === null || now >= deadlineAt) return { kind: 'settled', evidence } as const;
    return read('settling', waitUntil(settledAt, plan.polling, trouble, now));
  }
  if (isLost(trouble, lastAskedAt, plan.confirmMs, observations.freshFrom)) return 'lost';
  if (now >= deadlineAt) return lastAskedAt >= deadlineAt ? 'overdue' : read('watching', 0);
  const isAtRest = last !== null && isTerminal(last.status);
  const idleMs = Math.min(idleUntil(observations), deadlineAt) - now;
  if (idleMs > 0) {
    const troubleMs = trouble.last === null ? 0 : nextWait(plan.polling, 0, trouble);
    return read(isAtRest ? 'confirming' : 'watching', Math.max(idleMs, troubleMs), isAtRest);
  }
  if (isAtRest) return read('confirming', waitUntil(until, plan.polling, trouble, now));
  return read('watching', nextWait(plan.polling, now - watch.since, trouble), false);
}

/** Until when a late `prLink` is read for; null if for none. Only an answer asked for at the end or later says that there is none. */
function settleEnd({ fresh }: Observations, settleMs: number): number | null {
  if (fresh?.job.prLink !== null || fresh.job.status !== 'completed') return null;
  const endsAt = fresh.since + settleMs;
  return fresh.askedAt >= endsAt ? null : endsAt;
}

/** Waits until an active job has a terminal status. No receipt counts these reads. */
export async function waitUntilAtRest(context: FollowUpContext, active: AgentJob): Promise<void> {
  const { state } = context;
  const { plan } = state;
  const since = Date.now();
  const waiting = newWatch(active, since, since);
  record(waiting, active, since, since);
  while (waiting.last === null || !isTerminal(waiting.last.status)) {
    if (isLost(waiting.trouble, context.lastAskedAt, plan.confirmMs)) throw lostJob(state);
    context.enter(isUnauthorized(waiting.trouble) ? 'unauthorized' : 'waiting');
    refuseAfterDeadline(state);
    const waitMs = nextWait(plan.polling, Date.now() - since, waiting.trouble);
    const why = `waiting: ${state.lastAnswer ?? ''}, next in ${formatDuration(waitMs)}`;
    await readNext(context, waiting, { waitMs, why, summary: 'waiting: read the job' });
  }
}
