import { log, workflowInfo } from '@temporalio/workflow';
import type { SendTrouble, Trouble } from '../../core/activities';
import { nextWait, waitUntil } from '../../core/cadence';
import { provesDelivery } from '../../core/evidence';
import { isTerminal } from '../../core/job';
import type { Phase } from '../../core/result';
import { NO_TROUBLE } from '../../core/tally';
import { formatDuration } from '../../core/units';
import { tellOf } from '../notice';
import { afterSend } from './after-send';
import type { FollowUpContext } from './context';
import { followUpFailure, refuseAfterDeadline, sentence, sentSoFar } from './failures';
import { lastAnswerInWords, readAndRecord, readNext } from './poll';
import { send } from './send';
import { confirmed, told, type Watch } from './state';
import { takeTurn } from './take-turn';
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
  let permittedRunId = workflowInfo().firstExecutionRunId;
  if (state.plan.whenActive === 'wait') await takeTurn(context);
  for (;;) {
    refuseAfterDeadline(context);
    const askedAt = Date.now();
    const result = await send(context, prompt, permittedRunId);
    const before = state.lastAnswer;
    const [after, step] = afterSend(state, result, { askedAt, endedAt: Date.now() }, trouble);
    Object.assign(state, after);
    if (step.kind === 'delivered') return;
    if (step.kind === 'failed') throw followUpFailure(step.type, step.reason, state, step.answer);
    if (step.kind === 'again') {
      if (state.lastAnswer !== before) log.warn(`not sent: ${state.lastAnswer ?? ''}`);
      trouble = step.trouble;
      await tryAgainLater(context, step.phase, trouble);
      continue;
    }
    trouble = NO_TROUBLE;
    if (step.kind === 'wait for rest') {
      await waitUntilAtRest(context, step.job);
      continue;
    }
    const reconciled = await reconcile(context, step.why);
    if (reconciled === 'delivered') return;
    ({ permittedRunId } = reconciled);
  }
}

async function tryAgainLater(context: FollowUpContext, phase: Phase, trouble: Trouble): Promise<void> {
  const { state } = context;
  context.enterBriefly(phase);
  const wait = nextWait(state.plan.polling, 0, trouble, Math.random);
  const words = `${state.lastAnswer ?? ''}; ${sentSoFar(told(state))}; next try in ${formatDuration(wait)}`;
  await context.pause(wait, words);
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
      // After a reset, the run before may have used it: the send activity then refuses.
      return { permittedRunId: workflowInfo().firstExecutionRunId };
    case 'ask':
      state.doubt = doubt;
      return askOperator(context, watch);
  }
}

/**
 * Reads at the initial interval until a fresh answer shows that the message arrived, or until `reconcile` is over, counted
 * from the end of the POST. It begins when an answer is fresh, and lasts until there was one.
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
    const waitMs =
      now < freshFrom
        ? freshFrom - now
        : waitUntil(fresh === null ? freshFrom : until, polling, watch.trouble, now, Math.random);
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
