import { type ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import type { Posted, SendTrouble, Trouble } from '../../core/wire';
import { nextWait, waitUntil } from '../../core/cadence';
import { decideSend, provesDelivery } from '../../core/evidence';
import { type AgentJob, isTerminal, jobState } from '../../core/job';
import type { Phase } from '../../core/result';
import { afterReading, isLost, isUnauthorized, NO_TROUBLE } from '../../core/tally';
import { formatDuration } from '../../core/units';
import { tellOf } from '../notice';
import type { FollowUpContext } from './context';
import { followUpFailure, lostJob, refuseAfterDeadline, sentence, sentSoFar } from './failures';
import { lastAnswerInWords, readAndRecord, readNext, record } from './poll';
import { earlierBaseline, send, watchAfterReset } from './send';
import { afterPost, confirmed, type Watch, withoutPresumed, withPresumed } from './state';
import { waitUntilAtRest } from './watch';

/**
 * Brings the message to the service, once. The send activity looks at the job and sends in one task. What is certainly
 * not sent is tried again, with back-off; what is certainly rejected is not; what nobody can tell is looked for by
 * reading the job.
 *
 * A follow-up never continues as new before its message is delivered: the run's id is what tells the send activity
 * that the run was reset (measured: nothing tells a run continued from a reset one from any other).
 *
 * @throws ApplicationFailure `JobNotFound`, `FollowUpRejected`, `DeliveryUnknown` or `DeadlineExceeded`
 */
export async function deliver(context: FollowUpContext, prompt: string): Promise<void> {
  const { state } = context;
  let trouble = NO_TROUBLE;
  const { runId, firstExecutionRunId } = workflowInfo();
  let permittedRunId = firstExecutionRunId;
  // A run made by a reset counts one POST that is not in its history, and that the run before it may have made: until history
  // shows that POST, or for good once this run was refused to make it.
  let presumed: 'no' | 'for now' | 'for good' = runId === firstExecutionRunId ? 'no' : 'for now';
  for (;;) {
    refuseAfterDeadline(context);
    const askedAt = Date.now();
    const earlier = state.watch;
    const result = await send(context, prompt, permittedRunId);
    if (result.kind === 'unread') {
      context.note(result.trouble);
      trouble = afterReading(trouble, result.trouble, Date.now());
      refuseUnread(context, trouble, askedAt);
      await tryAgainLater(context, isUnauthorized(trouble) ? 'unauthorized' : 'baseline', trouble);
      continue;
    }
    if (result.kind === 'not-permitted') {
      const { message } = result;
      state.lastAnswer = message;
      trouble = afterReading(trouble, { kind: 'trouble', label: 'not permitted', message }, Date.now());
      await tryAgainLater(context, 'baseline', trouble);
      continue;
    }
    if (result.kind === 'held-back') {
      context.note({ kind: 'job', job: result.job });
      trouble = NO_TROUBLE;
      if (await heldBack(context, result.job, askedAt)) return;
      continue;
    }

    state.job = result.baseline ?? state.job;
    let lost: SendTrouble;
    if (result.kind === 'reset') {
      if (presumed === 'no') state.delivery = withPresumed(state.delivery);
      // Only the first time: the run before it has been over since.
      if (presumed !== 'for good') state.watch = watchAfterReset(context, result.baseline);
      presumed = 'for good';
      keepLook(context, result.baseline, askedAt, earlier);
      lost = result;
    } else {
      const { outcome } = result;
      if (outcome.verdict !== 'accepted') state.lastAnswer = outcome.message;
      if (presumed === 'for now' && outcome.verdict !== 'not-sent') {
        state.delivery = withoutPresumed(state.delivery);
        presumed = 'no';
      }
      state.delivery = afterPost(state.delivery, outcome);
      if (outcome.verdict === 'not-sent') {
        if (!outcome.repeatable) throw refused(context, outcome);
        trouble = afterReading(trouble, { kind: 'trouble', ...outcome }, Date.now());
        await tryAgainLater(context, 'sending', trouble);
        continue;
      }
      keepPosted(context, result);
      if (outcome.verdict === 'rejected') throw refused(context, outcome);
      if (outcome.verdict === 'accepted') return;
      lost = outcome;
    }
    state.lastAnswer = lost.message;
    state.doubt = lost.message;
    const reconciled = await reconcile(context, lost);
    if (reconciled === 'delivered') return;
    permittedRunId = reconciled.permittedRunId;
    trouble = NO_TROUBLE;
  }
}

async function tryAgainLater(context: FollowUpContext, phase: Phase, trouble: Trouble): Promise<void> {
  const { state } = context;
  context.enterBriefly(phase);
  const wait = nextWait(state.plan.polling, 0, trouble, Math.random);
  const words = `${state.lastAnswer ?? ''}; ${sentSoFar(state.delivery)}; next try in ${formatDuration(wait)}`;
  await context.pause(wait, words);
}

/** Ends the follow-up where the job can't be read and never will be: once it was read, trouble is a delay, as in the watch. */
function refuseUnread(context: FollowUpContext, trouble: Trouble, askedAt: number): void {
  const { state } = context;
  const { last } = trouble;
  // Once the message may have arrived, the caller needs to know what became of it.
  if (state.job !== null || state.delivery.verdict === 'unknown') {
    if (isLost(trouble, askedAt, state.plan.confirmMs)) throw lostJob(context);
    return;
  }
  if (last?.httpStatus === 404)
    throw followUpFailure('JobNotFound', `The service knows no such job: ${last.message}.`, state, last);
  if (last?.httpStatus === 400 || last?.httpStatus === 401 || last?.httpStatus === 403)
    throw followUpFailure('FollowUpRejected', `The job can't be read: ${last.message}.`, state, last);
}

/**
 * The look before the POST has shown a job to which nothing may be sent now.
 *
 * @returns whether it has shown that an earlier POST has arrived; else the job was waited for
 */
async function heldBack(context: FollowUpContext, job: AgentJob, askedAt: number): Promise<boolean> {
  const { state } = context;
  const { whenActive } = state.plan;
  const decision = decideSend(job, whenActive, earlierBaseline(state, askedAt));
  if (decision === 'arrived' && state.watch !== null) {
    record(state.watch, job, askedAt, Date.now());
    state.delivery = confirmed(state.delivery, 'read');
    return true;
  }
  if (state.delivery.verdict === 'not-sent') state.baseline = jobState(job);
  if (decision === 'reject') {
    const type = state.delivery.verdict === 'unknown' ? 'DeliveryUnknown' : 'FollowUpRejected';
    throw followUpFailure(type, `The job is ${job.status}, and whenActive is reject.`, state);
  }
  await waitUntilAtRest(context, job);
  return false;
}

/** This run may not send. The look is the baseline where it knows of no POST, else one more answer since that. */
function keepLook(
  { state }: FollowUpContext,
  job: AgentJob | null,
  askedAt: number,
  earlier: Watch | null,
): void {
  if (earlier === null) state.baseline = job === null ? null : jobState(job);
  else if (job !== null && state.watch !== null) record(state.watch, job, askedAt, Date.now());
}

/** The POST may have arrived. Its own answer is shown, and proves nothing of the turn: that is left to the reads. */
function keepPosted({ state }: FollowUpContext, { baseline, sentAt, outcome }: Posted): void {
  state.baseline = baseline === null ? null : jobState(baseline);
  state.sentAt = sentAt;
  if (outcome.verdict !== 'accepted' || state.watch === null) return;
  state.job = outcome.job;
  state.lastAnswer = outcome.job.status;
  state.watch.last = jobState(outcome.job);
}

/** If an earlier POST may have arrived, the delivery stays unknown, even if the service refuses a later one. */
function refused({ state }: FollowUpContext, outcome: SendTrouble): ApplicationFailure {
  const type = state.delivery.verdict === 'unknown' ? 'DeliveryUnknown' : 'FollowUpRejected';
  return followUpFailure(type, sentence(outcome.message), state, outcome);
}

/** The message counts as delivered, or the run that is named may send it once more. */
type Reconciled = 'delivered' | { readonly permittedRunId: string };

/**
 * Finds out whether a message arrived: first by reading the job for `reconcile`, which can prove it only if the job was at
 * rest before the send; then `onUnknownDelivery` decides.
 *
 * @throws ApplicationFailure `DeliveryUnknown` or `DeadlineExceeded`
 */
async function reconcile(context: FollowUpContext, lost: SendTrouble): Promise<Reconciled> {
  const { state } = context;
  const { watch } = state;
  if (watch === null) throw new TypeError('a delivery is reconciled before anything was sent');
  const { baseline } = watch.observations;
  const canBeRead = baseline !== null && isTerminal(baseline.status);
  if (canBeRead && (await readForProof(context, watch))) return 'delivered';

  const looked = canBeRead
    ? `Then reading the job for ${formatDuration(state.plan.reconcileMs)} showed no change caused by the message.`
    : 'Reading can tell nothing: the job was active before the send, or not known.';
  const doubt = `${sentence(lost.message)} ${looked}`;
  const unknown = () => followUpFailure('DeliveryUnknown', doubt, state, lost);
  switch (state.plan.onUnknownDelivery) {
    case 'fail':
      throw unknown();
    case 'assume-delivered':
      state.delivery = confirmed(state.delivery, 'assumed');
      return 'delivered';
    case 'resend':
      if (state.resent) throw unknown();
      state.resent = true;
      // After a reset, the run before may have used it: the send activity then refuses. It can't be refused here, because a
      // reset run replays what the first run did with its permission.
      return { permittedRunId: workflowInfo().firstExecutionRunId };
    case 'ask':
      state.doubt = doubt;
      return askOperator(context, watch);
  }
}

/**
 * Reads at the initial interval until a fresh answer shows that the message arrived, or until `reconcile` is over, counted
 * from the end of the POST. It lasts until there was a fresh answer.
 */
async function readForProof(context: FollowUpContext, watch: Watch): Promise<boolean> {
  const { polling, reconcileMs, confirmMs } = context.state.plan;
  const { freshFrom } = watch.observations;
  const until = freshFrom - confirmMs + reconcileMs;
  context.enter('reconciling');
  while (!foundByReading(context, watch)) {
    refuseAfterDeadline(context);
    const now = Date.now();
    const { fresh } = watch.observations;
    if (fresh !== null && now >= until) return false;
    const waitMs = waitUntil(fresh === null ? freshFrom : until, polling, watch.trouble, now, Math.random);
    await context.pause(
      waitMs,
      `${lastAnswerInWords(context)}; did it arrive? next read in ${formatDuration(waitMs)}`,
    );
    await readAndRecord(context, watch);
    context.show();
  }
  return true;
}

/** Reads on meanwhile: the job itself may still give the answer. */
async function askOperator(context: FollowUpContext, watch: Watch): Promise<Reconciled> {
  const { state } = context;
  context.enter('needs-decision');
  await tellOf(state, null);
  for (;;) {
    context.enter('needs-decision');
    const waitMs = nextWait(state.plan.polling, Date.now() - watch.since, watch.trouble, Math.random);
    const why = `did the message arrive? resolveDelivery decides; next read in ${formatDuration(waitMs)}`;
    // The newest row of the timeline.
    const summary = `waits for a decision (resolveDelivery); poll ${watch.polls + 1}`;
    await readNext(context, watch, { waitMs, why, summary });
    const { decision } = context;
    context.decision = null;
    if (foundByReading(context, watch)) return 'delivered';
    if (decision?.decision === 'delivered') {
      state.delivery = confirmed(state.delivery, 'operator');
      return 'delivered';
    }
    if (decision !== null) return { permittedRunId: decision.runId };
    refuseAfterDeadline(context);
  }
}

function foundByReading({ state }: FollowUpContext, watch: Watch): boolean {
  if (!provesDelivery(watch.observations)) return false;
  state.delivery = confirmed(state.delivery, 'read');
  return true;
}
