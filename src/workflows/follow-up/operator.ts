import { defineQuery, setHandler, workflowInfo } from '@temporalio/workflow';
import {
  QUERY_PROGRESS,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../../core/names';
import { DELIVERY_DECISIONS, type DeliveryDecision, type FollowUpProgress } from '../../core/result';
import { quote } from '../../core/text';
import { parseDuration } from '../../core/units';
import { refuseFor, updatesOfRun } from '../updates';
import type { FollowUpContext } from './context';
import { isFull } from './history-budget';
import { progressOf } from './state';

/** Each update returns the progress after it. */
export function receiveOperators(context: FollowUpContext): void {
  const { state } = context;
  setHandler(defineQuery<FollowUpProgress>(QUERY_PROGRESS), () => progressOf(state), {
    description:
      'Where the follow-up stands: phase, last job, delivery, evidence, counts, next read, deadline.',
  });
  const set = updatesOfRun<FollowUpProgress>();
  set(
    UPDATE_POLL_NOW,
    async () => {
      await context.readNow();
      return progressOf(state);
    },
    {
      description: 'Reads the job now instead of at the next interval, and answers when it has been read.',
      refusal: () => context.noRead(),
    },
  );
  set(
    UPDATE_EXTEND_DEADLINE,
    (duration: string) => {
      const parsed = parseDuration(duration);
      if ('ms' in parsed) context.extendTo(Date.now() + parsed.ms);
      return progressOf(state);
    },
    {
      description: 'Moves the deadline to now + the duration ("90m"), never to an earlier time than it has.',
      refusal: (duration) => {
        const parsed = parseDuration(duration);
        return 'problem' in parsed ? `duration: ${parsed.problem}` : undefined;
      },
    },
  );
  set(
    UPDATE_RESOLVE_DELIVERY,
    async (decision: DeliveryDecision, runId?: string) => {
      // Several updates may have passed the validator before the first one was carried out.
      refuseFor(undecidable(context));
      await context.decide({ decision, runId: runId ?? workflowInfo().firstExecutionRunId });
      return progressOf(state);
    },
    {
      description:
        'Says whether an unknown delivery arrived: "delivered", or "not-delivered" with the id of the run that may send it again.',
      // A run made by a reset replays the decisions for the run before.
      refusal: (decision, runId?) => undecidable(context) ?? wrongDecision(decision, runId),
      unblocks: true,
    },
  );
}

function undecidable({ state, decision: taken }: FollowUpContext): string | undefined {
  if (state.phase !== 'needs-decision')
    return `the follow-up is ${state.phase}; a decision is taken in needs-decision only`;
  return taken === null ? undefined : `somebody has decided "${taken.decision}", which is being carried out`;
}

function wrongDecision(decision: unknown, namedRunId: unknown): string | undefined {
  if (!DELIVERY_DECISIONS.some((each) => each === decision))
    return `decision: must be one of ${DELIVERY_DECISIONS.join(', ')}`;
  const { runId, firstExecutionRunId } = workflowInfo();
  const named = namedRunId ?? firstExecutionRunId;
  // A reset applies the updates of the run before once more: only a permission for this very run counts.
  if (decision === 'delivered') return undefined;
  if (isFull(workflowInfo())) return 'the history has no room for another POST';
  if (named === runId) return undefined;
  return `runId: this is run ${runId}, made by a reset; a decision not-delivered must name it, and this one is for run ${quote(named)}`;
}
