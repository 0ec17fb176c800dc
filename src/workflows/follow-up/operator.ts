import {
  ApplicationFailure,
  condition,
  defineQuery,
  defineUpdate,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import {
  QUERY_PROGRESS,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../../core/names';
import { DELIVERY_DECISIONS, type DeliveryDecision, type FollowUpProgress } from '../../core/result';
import { singleLine } from '../../core/text';
import { parseDuration } from '../../core/units';
import type { FollowUpContext } from './context';
import { progressOf } from './state';

const progressQuery = defineQuery<FollowUpProgress>(QUERY_PROGRESS);
const pollNowUpdate = defineUpdate<FollowUpProgress>(UPDATE_POLL_NOW);
const resolveDeliveryUpdate = defineUpdate<FollowUpProgress, [decision: DeliveryDecision, runId?: string]>(
  UPDATE_RESOLVE_DELIVERY,
);
const extendDeadlineUpdate = defineUpdate<FollowUpProgress, [duration: string]>(UPDATE_EXTEND_DEADLINE);

/** Registers the query and the updates. Each update returns the progress after it. */
export function receiveOperators(context: FollowUpContext): void {
  const { state } = context;
  setHandler(progressQuery, () => progressOf(state), {
    description:
      'Where the follow-up stands: phase, last job, delivery, evidence, counts, next read, deadline.',
  });
  setHandler(
    pollNowUpdate,
    async () => {
      // A read that is under way was asked for before this call, so that the next one is waited for.
      const before = context.readsBegun;
      context.updates += 1;
      context.pollNow();
      await condition(() => context.over || (context.readsEnded > before && context.reads !== 'counting'));
      return progressOf(state);
    },
    {
      description: 'Reads the job now instead of at the next interval, and answers when it has been read.',
      validator: () => {
        if (context.sending) throw refused('the message is being sent; there is nothing to poll yet');
        refuseWithoutRoom(context.noRoomFor('read'));
      },
    },
  );
  setHandler(
    extendDeadlineUpdate,
    (duration) => {
      context.updates += 1;
      const parsed = parseDuration(duration);
      if ('ms' in parsed) state.deadlineAt = Math.max(state.deadlineAt, Date.now() + parsed.ms);
      context.show();
      return progressOf(state);
    },
    {
      description: 'Moves the deadline to now + the duration ("90m"), never to an earlier time than it has.',
      validator: (duration) => {
        const parsed = parseDuration(duration);
        if ('problem' in parsed) throw refused(`duration: ${parsed.problem}`);
        refuseWithoutRoom(context.noRoomFor('change'));
      },
    },
  );
  setHandler(
    resolveDeliveryUpdate,
    async (decision, runId?) => {
      // Several updates may have passed the validator before the first one was carried out.
      refuseUndecidable(context);
      context.decide({ decision, runId: runId ?? undefined });
      await condition(() => context.over || state.phase !== 'needs-decision');
      return progressOf(state);
    },
    {
      description:
        'Says whether an unknown delivery arrived: "delivered", or "not-delivered" with the id of the run that may send it again.',
      validator: (decision, runId?) => {
        refuseUndecidable(context);
        refuseDecision(decision, runId);
        if (decision === 'not-delivered') refuseWithoutRoom(context.noRoomFor('send'));
      },
    },
  );
}

/** @throws ApplicationFailure where there is nothing to decide, or somebody has decided */
function refuseUndecidable(context: FollowUpContext): void {
  const { phase } = context.state;
  if (phase !== 'needs-decision') {
    throw refused(`the follow-up is ${phase}; a decision is taken in needs-decision only`);
  }
  if (context.decision !== null) {
    throw refused(`somebody has decided "${context.decision.decision}", which is being carried out`);
  }
}

/**
 * For the validator alone, which a replay leaves out: a run that was made by a reset replays the decisions for the run before.
 *
 * @throws ApplicationFailure for what is no decision, or not for this run
 */
function refuseDecision(decision: unknown, namedRunId: unknown): void {
  if (!isDecision(decision)) {
    throw refused(`decision: must be one of ${DELIVERY_DECISIONS.join(', ')}`);
  }
  if (namedRunId !== undefined && namedRunId !== null && typeof namedRunId !== 'string') {
    throw refused('runId: must be the run id of this follow-up, as a text');
  }
  // A reset applies the updates of the run before once more: only a permission for this very run counts.
  const { runId, firstExecutionRunId } = workflowInfo();
  const named = namedRunId ?? firstExecutionRunId;
  if (decision === 'not-delivered' && named !== runId) {
    throw refused(
      `runId: this is run ${runId}, made by a reset; a decision not-delivered must name it, and this one is for run ${singleLine(named, 64)}`,
    );
  }
}

/** What a person repeats must not fill the history, at whose limits the server ends a workflow. */
function refuseWithoutRoom(reason: string | undefined): void {
  if (reason !== undefined) throw refused(reason);
}

/** Any client may call an update with anything. */
function isDecision(value: unknown): value is DeliveryDecision {
  return (DELIVERY_DECISIONS as readonly unknown[]).includes(value);
}

/** An update that is refused by its validator leaves no trace in history. */
function refused(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'InvalidUpdate', message: reason, nonRetryable: true });
}
