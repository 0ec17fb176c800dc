import { workflowInfo } from '@temporalio/workflow';
import type { SendTrouble } from '../../core/activities';
import { nextWait } from '../../core/cadence';
import { provesDelivery } from '../../core/evidence';
import { isTerminal } from '../../core/job';
import { formatDuration } from '../../core/units';
import type { Decision, FollowUpContext } from './context';
import { followUpFailure, refuseAfterDeadline, sentence } from './failures';
import { lastAnswerInWords, readAndRecord, readNext } from './poll';
import { confirmed, type Watch } from './state';
import { waitUntil } from './watch-step';

/** The message counts as delivered, or the run that is named may send it once more. */
type Reconciled = 'delivered' | { readonly permittedRunId: string };

/**
 * Looks for a message of which nobody can tell whether it arrived: first by reading the job for `reconcile`, then by
 * what the caller has said in `onUnknownDelivery`.
 *
 * Reading proves a delivery only where the job was at rest before the send; where it was not, there is no window.
 *
 * @param lost how the send ended
 * @throws ApplicationFailure `DeliveryUnknown` or `DeadlineExceeded`
 */
export async function reconcile(context: FollowUpContext, lost: SendTrouble): Promise<Reconciled> {
  const { state } = context;
  const { watch } = state;
  if (watch === null) throw new TypeError('a delivery is reconciled before anything was sent');
  const { baseline } = watch.observations;
  const canBeRead = baseline !== null && isTerminal(baseline.status);
  if (canBeRead && (await readForProof(context, watch))) return 'delivered';

  const unknown = () =>
    followUpFailure(
      'DeliveryUnknown',
      `${sentence(lost.message)} ${canBeRead ? `Then reading the job for ${formatDuration(state.plan.reconcileMs)} showed no change caused by the message.` : whyNotRead(baseline === null)}`,
      state,
      lost,
    );
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
      return askOperator(context, watch);
  }
}

function whyNotRead(baselineUnknown: boolean): string {
  return baselineUnknown
    ? 'The job before the send is not known, so that reading it can tell nothing.'
    : 'Then the job was active before, so that reading it can tell nothing.';
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

/** Waits for an operator's `resolveDelivery`, and reads on: the job itself may still give the answer. */
async function askOperator(context: FollowUpContext, watch: Watch): Promise<Reconciled> {
  const { state } = context;
  for (;;) {
    context.enter('needs-decision');
    const waitMs = nextWait(state.plan.polling, Date.now() - watch.since, watch.trouble, Math.random);
    const why = `did the message arrive? resolveDelivery decides; next read in ${formatDuration(waitMs)}`;
    await readNext(context, watch, { waitMs, why });
    const { decision } = context;
    context.decision = null;
    if (foundByReading(context, watch)) return 'delivered';
    if (decision !== null) return carryOut(context, decision);
    refuseAfterDeadline(context);
  }
}

function carryOut({ state }: FollowUpContext, { decision, runId }: Decision): Reconciled {
  if (decision === 'delivered') {
    state.delivery = confirmed(state.delivery, 'operator');
    return 'delivered';
  }
  return { permittedRunId: runId ?? workflowInfo().firstExecutionRunId };
}

function foundByReading({ state }: FollowUpContext, watch: Watch): boolean {
  if (!provesDelivery(watch.observations)) return false;
  state.delivery = confirmed(state.delivery, 'read');
  return true;
}
