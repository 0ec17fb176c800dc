import { CancellationScope, log, workflowInfo } from '@temporalio/workflow';
import type { SendTrouble, Trouble } from '../../core/activities';
import { nextWait, waitUntil } from '../../core/cadence';
import { provesDelivery } from '../../core/evidence';
import { isTerminal } from '../../core/job';
import type { Phase } from '../../core/result';
import { isLost, isUnauthorized, NO_TROUBLE } from '../../core/tally';
import { formatDuration } from '../../core/units';
import { tellOf } from '../notice';
import { afterSend } from './after-send';
import type { FollowUpContext } from './context';
import { followUpFailure, lostJob, refuseAfterDeadline, sentence } from './failures';
import { lastAnswerInWords, readNext } from './poll';
import { send } from './send';
import { confirmed, told, type Watch } from './state';
import { takeTurn } from './turn';
import { waitUntilAtRest } from './watch';

/**
 * Brings the message to the service, once: what is certainly not sent is tried again, and an unknown delivery is looked for by
 * reading the job. No run continues as new before that: the send activity knows a run made by a reset by its id, and one that
 * continues it would look clean (measured).
 */
export async function deliver(context: FollowUpContext, prompt: string): Promise<void> {
  const { state } = context;
  let trouble = NO_TROUBLE;
  let permittedRunId = workflowInfo().firstExecutionRunId;
  if (state.plan.whenActive === 'wait') await takeTurn(context);
  for (;;) {
    refuseAfterDeadline(state);
    const askedAt = Date.now();
    context.enterBriefly('sending');
    const result = await context.whileBusy('the message is being sent', () =>
      context.asRead((insist) => send(context, prompt, permittedRunId, insist)),
    );
    const before = state.lastAnswer;
    const step = afterSend(state, result, askedAt, trouble);
    // It has only waited for its POST.
    const own = CancellationScope.current();
    if (own.consideredCancelled) await own.cancelRequested;
    if (step.kind === 'delivered') return;
    if (step.kind === 'failed') throw step.failure;
    trouble = step.kind === 'again' ? step.trouble : NO_TROUBLE;
    if (step.kind === 'again') {
      if (state.lastAnswer !== before) log.warn(`not sent: ${state.lastAnswer ?? ''}`);
      await tryAgainLater(context, step.phase, trouble);
    } else if (step.kind === 'wait for rest') {
      await waitUntilAtRest(context, step.job);
    } else {
      const permitted = await reconcile(context, step.why);
      if (permitted === null) return;
      permittedRunId = permitted;
    }
  }
}

async function tryAgainLater(context: FollowUpContext, phase: Phase, trouble: Trouble): Promise<void> {
  const { state } = context;
  context.enterBriefly(phase);
  const waitMs = nextWait(state.plan.polling, 0, trouble);
  const { verdict, sends } = told(state);
  const unsent = sends === 0 ? 'nothing sent yet' : 'nothing processed yet';
  const delivery = verdict === 'not-sent' ? unsent : `delivery ${verdict}`;
  await context.pause(
    waitMs,
    `${state.lastAnswer ?? ''}; ${delivery}; next try in ${formatDuration(waitMs)}`,
  );
}

/**
 * Finds out whether a message arrived: by reading the job if it was at rest before the send; else `onUnknownDelivery` decides.
 *
 * @returns the run that may send it once more; null where it counts as delivered
 */
async function reconcile(context: FollowUpContext, lost: SendTrouble): Promise<string | null> {
  const { state } = context;
  const { watch } = state;
  if (watch === null) throw new TypeError('a delivery is reconciled before anything was sent');
  const { baseline } = watch.observations;
  const canBeRead = baseline !== null && isTerminal(baseline.status);
  if (canBeRead && (await readForProof(context, watch))) return null;

  const showed = canBeRead
    ? `Then reading the job for ${formatDuration(state.plan.reconcileMs)} showed no change caused by the message.`
    : 'Reading can tell nothing: the job was active before the send, or not known.';
  const doubt = `${sentence(lost.message)} ${showed}`;
  const unknown = () => followUpFailure('DeliveryUnknown', doubt, state, lost);
  switch (state.plan.onUnknownDelivery) {
    case 'fail':
      throw unknown();
    case 'assume-delivered':
      state.delivery = confirmed(state.delivery, 'assumed');
      return null;
    case 'resend':
      if (state.resent) throw unknown();
      state.resent = true;
      // After a reset, the run before may have used it: the send activity then refuses.
      return workflowInfo().firstExecutionRunId;
    case 'ask':
      state.doubt = doubt;
      return askOperator(context, watch);
  }
}

/** Reads until a fresh answer shows that the message arrived, or `reconcile` is over and there was a fresh one. */
async function readForProof(context: FollowUpContext, watch: Watch): Promise<boolean> {
  const { state } = context;
  const { polling, reconcileMs, confirmMs } = state.plan;
  const { freshFrom } = watch.observations;
  const until = freshFrom - confirmMs + reconcileMs;
  while (!foundByReading(context, watch)) {
    refuseWithoutJob(context, watch);
    context.enter(isUnauthorized(watch.trouble) ? 'unauthorized' : 'reconciling');
    refuseAfterDeadline(state);
    const now = Date.now();
    const { fresh } = watch.observations;
    if (fresh !== null && now >= until) return false;
    const at = fresh === null ? freshFrom : until;
    const waitMs = now < freshFrom ? freshFrom - now : waitUntil(at, polling, watch.trouble, now);
    const why = `${lastAnswerInWords(context)}; did it arrive? next read in ${formatDuration(waitMs)}`;
    await readNext(context, watch, { waitMs, why, single: true });
  }
  return true;
}

async function askOperator(context: FollowUpContext, watch: Watch): Promise<string | null> {
  const { state } = context;
  context.enter('needs-decision');
  await tellOf(state, null);
  for (;;) {
    context.enter('needs-decision');
    const waitMs = nextWait(state.plan.polling, Date.now() - watch.since, watch.trouble);
    const why = `did the message arrive? resolveDelivery decides; next read in ${formatDuration(waitMs)}`;
    const summary = `waits for a decision (resolveDelivery); poll ${watch.polls + 1}`;
    await readNext(context, watch, { waitMs, why, summary });
    const { decision } = context;
    context.decision = null;
    if (foundByReading(context, watch)) return null;
    if (decision?.decision === 'delivered') {
      state.delivery = confirmed(state.delivery, 'operator');
      return null;
    }
    if (decision !== null) return decision.runId;
    refuseWithoutJob(context, watch);
    refuseAfterDeadline(state);
  }
}

/** @throws ApplicationFailure `JobNotFound` */
function refuseWithoutJob({ state, lastAskedAt }: FollowUpContext, watch: Watch): void {
  const { trouble, observations } = watch;
  const isGone = isLost(trouble, lastAskedAt, state.plan.confirmMs, observations.freshFrom);
  if (state.job !== null && isGone) throw lostJob(state);
}

function foundByReading({ state }: FollowUpContext, watch: Watch): boolean {
  if (!provesDelivery(watch.observations)) return false;
  state.delivery = confirmed(state.delivery, 'read');
  return true;
}
