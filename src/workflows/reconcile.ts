import type { SendTrouble } from '../contract/activities';
import { formatDuration } from '../contract/duration';
import { isTerminal } from '../contract/job';
import { refuseAfterDeadline } from './ends';
import { nextWait } from '../polling/cadence';
import { confirmed } from './delivery';
import { provesDelivery } from './evidence';
import { followUpFailure, sentence } from './failures';
import { lastAnswerInWords, poll, pollPatiently } from './poll';
import type { Run } from './run';
import type { WatchState } from './state';
import { mayBePatient } from './watch-step';

export type Reconciled = 'delivered' | 'send-again';

/**
 * Looks for a message of which nobody can tell whether it arrived: first by reading the job for `reconcile`, then by
 * what the caller has said in `onUnknownDelivery`.
 *
 * Reading proves a delivery only where the job was at rest before the send; where it was not, there is no window.
 *
 * @param lost how the send ended
 * @returns whether the message counts as delivered, or may be sent once more
 * @throws ApplicationFailure `DeliveryUnknown` or `DeadlineExceeded`
 */
export async function reconcile(run: Run, watching: WatchState, lost: SendTrouble): Promise<Reconciled> {
  const { state } = run;
  const canBeRead = isTerminal(watching.sightings.baseline.status);
  if (canBeRead && (await readForProof(run, watching))) return 'delivered';

  const unknown = () => {
    const tried = canBeRead
      ? `reading the job for ${formatDuration(state.plan.reconcileMs)} showed nothing that the message explains`
      : 'the job was active before, so that reading it can tell nothing';
    return followUpFailure('DeliveryUnknown', `${sentence(lost.message)} Then ${tried}.`, state, lost);
  };
  switch (state.plan.onUnknownDelivery) {
    case 'fail':
      throw unknown();
    case 'assume-delivered':
      state.delivery = confirmed(state.delivery, 'assumed');
      return 'delivered';
    case 'resend':
      if (state.resent) throw unknown();
      state.resent = true;
      return 'send-again';
    case 'ask':
      return askOperator(run, watching);
  }
}

/** Reads at the initial interval for `reconcile`, or until the job has moved. */
async function readForProof(run: Run, watching: WatchState): Promise<boolean> {
  const { state } = run;
  const until = Date.now() + state.plan.reconcileMs;
  run.enter('reconciling');
  while (!foundByReading(run, watching)) {
    refuseAfterDeadline(run);
    const leftMs = until - Date.now();
    if (leftMs <= 0) return false;
    const waitMs = Math.min(leftMs, nextWait(state.plan.polling, 0, watching.trouble, Math.random));
    await run.pause(
      waitMs,
      `${lastAnswerInWords(run)}; did it arrive? next read in ${formatDuration(waitMs)}`,
    );
    await poll(run, watching);
    run.show();
  }
  return true;
}

/** Waits for an operator's `resolveDelivery`, and reads on: the job itself may still give the answer. */
async function askOperator(run: Run, watching: WatchState): Promise<Reconciled> {
  const { state } = run;
  const askedAt = Date.now();
  for (;;) {
    run.enter('needs-decision');
    const waitMs = nextWait(state.plan.polling, Date.now() - askedAt, watching.trouble, Math.random);
    await run.pause(
      waitMs,
      `did the message arrive? resolveDelivery decides; next read in ${formatDuration(waitMs)}`,
    );
    const decision = run.takeDecision();
    if (decision === 'not-delivered') return 'send-again';
    if (decision === 'delivered') {
      state.delivery = confirmed(state.delivery, 'operator');
      return 'delivered';
    }
    refuseAfterDeadline(run);
    const patient = mayBePatient(state.plan.polling, state.polls, watching) && run.mayBePatient();
    if (patient) await pollPatiently(run, watching, askedAt);
    else await poll(run, watching);
    if (foundByReading(run, watching)) return 'delivered';
  }
}

function foundByReading(run: Run, watching: WatchState): boolean {
  if (!provesDelivery(watching.sightings)) return false;
  run.state.delivery = confirmed(run.state.delivery, 'read');
  return true;
}
