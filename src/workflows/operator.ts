import { ApplicationFailure, condition, defineQuery, defineUpdate, setHandler } from '@temporalio/workflow';
import { parseDuration } from '../contract/duration';
import {
  QUERY_PROGRESS,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../contract/names';
import { DELIVERY_DECISIONS, type DeliveryDecision, type FollowUpProgress } from '../contract/progress';
import type { Run } from './run';
import { progressOf } from './state';

export const progressQuery = defineQuery<FollowUpProgress>(QUERY_PROGRESS);
export const pollNowUpdate = defineUpdate<FollowUpProgress>(UPDATE_POLL_NOW);
export const resolveDeliveryUpdate = defineUpdate<FollowUpProgress, [decision: DeliveryDecision]>(
  UPDATE_RESOLVE_DELIVERY,
);
export const extendDeadlineUpdate = defineUpdate<FollowUpProgress, [duration: string]>(
  UPDATE_EXTEND_DEADLINE,
);

/** Opens the run to whoever watches or steers it. Each update answers with the progress after it. */
export function receiveOperators(run: Run): void {
  const { state } = run;
  setHandler(progressQuery, () => progressOf(state), {
    description:
      'Where the follow-up stands: phase, last job, delivery, evidence, counts, next read, deadline.',
  });
  setHandler(
    pollNowUpdate,
    async () => {
      // A read that is under way was asked for before this call, so that the next one is waited for.
      const before = run.readsAsked;
      run.pollNow();
      await condition(() => run.over || (run.readsAnswered > before && run.reads !== 'counting'));
      return progressOf(state);
    },
    {
      description: 'Reads the job now instead of at the next interval, and answers when it has been read.',
      validator: () => {
        if (run.sending) throw refused('the message is being sent; there is nothing to poll yet');
      },
    },
  );
  setHandler(
    extendDeadlineUpdate,
    (duration) => {
      const parsed = parseDuration(duration);
      if ('ms' in parsed) state.deadlineAt = Math.max(state.deadlineAt, Date.now() + parsed.ms);
      run.show();
      return progressOf(state);
    },
    {
      description: 'Moves the deadline to now + the duration ("90m"), never to an earlier time than it has.',
      validator: (duration) => {
        const parsed = parseDuration(duration);
        if ('problem' in parsed) throw refused(`duration: ${parsed.problem}`);
      },
    },
  );
  setHandler(
    resolveDeliveryUpdate,
    async (decision) => {
      run.decide(decision);
      await condition(() => run.over || state.phase !== 'needs-decision');
      return progressOf(state);
    },
    {
      description:
        'Says whether an unknown delivery arrived: "delivered" or "not-delivered" (it is then sent again).',
      validator: (decision) => {
        if (state.phase !== 'needs-decision') {
          throw refused(`the follow-up is ${state.phase}; a decision is taken in needs-decision only`);
        }
        if (!isDecision(decision)) {
          throw refused(`decision: must be one of ${DELIVERY_DECISIONS.join(', ')}`);
        }
      },
    },
  );
}

/** Any client may call an update with anything. */
function isDecision(value: unknown): value is DeliveryDecision {
  return (DELIVERY_DECISIONS as readonly unknown[]).includes(value);
}

/** An update that is refused by its validator leaves no trace in history. */
function refused(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'InvalidUpdate', message: reason, nonRetryable: true });
}
