import {
  ApplicationFailure,
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
import type { OperatorStep } from './history-budget';
import { progressOf } from './state';

/** Each update returns the progress after it. */
export function receiveOperators(context: FollowUpContext): void {
  const { state } = context;
  setHandler(defineQuery<FollowUpProgress>(QUERY_PROGRESS), () => progressOf(state), {
    description:
      'Where the follow-up stands: phase, last job, delivery, evidence, counts, next read, deadline.',
  });
  setHandler(
    defineUpdate<FollowUpProgress>(UPDATE_POLL_NOW),
    async () => {
      await context.readNow();
      return progressOf(state);
    },
    {
      description: 'Reads the job now instead of at the next interval, and answers when it has been read.',
      validator: () => {
        refuse(context, 'read');
      },
    },
  );
  setHandler(
    defineUpdate<FollowUpProgress, [duration: string]>(UPDATE_EXTEND_DEADLINE),
    (duration) => {
      const parsed = parseDuration(duration);
      if ('ms' in parsed) context.extendTo(Date.now() + parsed.ms);
      return progressOf(state);
    },
    {
      description: 'Moves the deadline to now + the duration ("90m"), never to an earlier time than it has.',
      validator: (duration) => {
        const parsed = parseDuration(duration);
        if ('problem' in parsed) throw refused(`duration: ${parsed.problem}`);
        refuse(context, 'change');
      },
    },
  );
  setHandler(
    defineUpdate<FollowUpProgress, [DeliveryDecision, runId?: string]>(UPDATE_RESOLVE_DELIVERY),
    async (decision, runId?) => {
      // Several updates may have passed the validator before the first one was carried out.
      refuseUndecidable(context);
      await context.decide({ decision, runId: runId ?? workflowInfo().firstExecutionRunId });
      return progressOf(state);
    },
    {
      description:
        'Says whether an unknown delivery arrived: "delivered", or "not-delivered" with the id of the run that may send it again.',
      validator: (decision, runId?) => {
        refuseUndecidable(context);
        refuseDecision(decision, runId);
        if (decision === 'not-delivered') refuse(context, 'send');
      },
    },
  );
}

function refuseUndecidable({ state, decision: taken }: FollowUpContext): void {
  if (state.phase !== 'needs-decision')
    throw refused(`the follow-up is ${state.phase}; a decision is taken in needs-decision only`);
  if (taken !== null) throw refused(`somebody has decided "${taken.decision}", which is being carried out`);
}

/** For the validator alone, which a replay leaves out: a run made by a reset replays the decisions for the run before. */
function refuseDecision(decision: unknown, namedRunId: unknown): void {
  if (!(DELIVERY_DECISIONS as readonly unknown[]).includes(decision))
    throw refused(`decision: must be one of ${DELIVERY_DECISIONS.join(', ')}`);
  if (namedRunId !== undefined && namedRunId !== null && typeof namedRunId !== 'string')
    throw refused('runId: must be the run id of this follow-up, as a text');
  // A reset applies the updates of the run before once more: only a permission for this very run counts.
  const { runId, firstExecutionRunId } = workflowInfo();
  const named = namedRunId ?? firstExecutionRunId;
  if (decision === 'not-delivered' && named !== runId) {
    throw refused(
      `runId: this is run ${runId}, made by a reset; a decision not-delivered must name it, and this one is for run ${singleLine(named, 64)}`,
    );
  }
}

function refuse(context: FollowUpContext, step: OperatorStep): void {
  const reason = context.refusalOf(step);
  if (reason !== undefined) throw refused(reason);
}

/** An update that is refused by its validator leaves no trace in history. */
function refused(reason: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(reason, 'InvalidUpdate');
}
