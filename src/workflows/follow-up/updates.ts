import { condition, defineQuery, setHandler, workflowInfo } from '@temporalio/workflow';
import {
  QUERY_PROGRESS,
  UPDATE_EXTEND_DEADLINE,
  UPDATE_POLL_NOW,
  UPDATE_RESOLVE_DELIVERY,
} from '../../contract/names';
import { DELIVERY_DECISIONS, type DeliveryDecision, type FollowUpProgress } from '../../contract/result';
import { quote } from '../../contract/text';
import { parseDuration } from '../../contract/duration';
import { isHistoryFull } from '../../follow-up/history-budget';
import { toFollowUpProgress } from '../../follow-up/receipt';
import { decisionPhaseProblem, isDecisionNeeded } from '../../follow-up/state';
import { registerUpdate, rejectUpdateIf } from '../register-update';
import type { FollowUpRun } from './run';

/**
 * Registers the query and the updates. Each update applies one event and returns the progress. `pollNow` first waits until the
 * request was made, and `resolveDelivery` until the loop has decided the next step.
 */
export function registerHandlers(run: FollowUpRun): void {
  const progress = () => toFollowUpProgress(run.state, run.step, run.isSending);
  setHandler(defineQuery<FollowUpProgress>(QUERY_PROGRESS), progress, {
    description:
      'Returns the phase, the last job, the delivery, the evidence, the counts, the next read and the deadline.',
  });
  registerUpdate(UPDATE_POLL_NOW, () => pollNow(run).then(progress), {
    description:
      'Makes the next request now (a read, or another try of the send), and returns the progress after it.',
    findProblem: () => readProblem(run),
  });
  const setDeadline = (duration: string) => {
    extendDeadline(run, duration);
    return progress();
  };
  registerUpdate(UPDATE_EXTEND_DEADLINE, setDeadline, {
    description: 'Sets the deadline to now + the duration ("90m"), never to an earlier time than before.',
    findProblem: (duration) => endProblem(run) ?? durationProblem(duration),
  });
  // Clients in other languages may send null for an omitted argument.
  const resolve = (decision: DeliveryDecision, runId?: string | null) =>
    resolveDelivery(run, decision, runId).then(progress);
  registerUpdate(UPDATE_RESOLVE_DELIVERY, resolve, {
    description:
      'Decides whether a message of unknown delivery arrived: "delivered", or "not-delivered" with the ID of the run that may send it again.',
    findProblem: (decision, runId?) =>
      endProblem(run) ?? decisionTimeProblem(run) ?? decisionProblem(decision, runId),
  });
}

async function pollNow(run: FollowUpRun): Promise<void> {
  run.interrupt({ kind: 'read requested', at: Date.now() });
  await condition(() => run.step.do === 'end' || run.state.pollNowAt === null);
}

function extendDeadline(run: FollowUpRun, duration: string): void {
  const parsed = parseDuration(duration);
  if ('ms' in parsed) run.interrupt({ kind: 'deadline extended', deadlineAt: Date.now() + parsed.ms });
}

async function resolveDelivery(
  run: FollowUpRun,
  decision: DeliveryDecision,
  namedRunId: string | null = null,
): Promise<void> {
  // The check is repeated, because several updates can pass the validator before the first update is applied.
  rejectUpdateIf(decisionTimeProblem(run));
  const runId = namedRunId ?? workflowInfo().firstExecutionRunId;
  run.interrupt({ kind: 'delivery decided', decision, runId });
  const { step } = run;
  await condition(() => run.step.do === 'end' || run.step !== step);
}

function durationProblem(duration: unknown): string | undefined {
  const parsed = parseDuration(duration);
  return 'problem' in parsed ? `duration: ${parsed.problem}` : undefined;
}

/** Returns why a follow-up that has decided to end accepts no update, although its workflow may still run for some seconds. */
function endProblem({ step }: FollowUpRun): string | undefined {
  return step.do === 'end' ? 'the follow-up has ended' : undefined;
}

/** Returns why the job can't be read now; undefined if it can be read. */
function readProblem(run: FollowUpRun): string | undefined {
  const { step, isSending } = run;
  if (isSending) return "the message is being sent, so the job can't be polled yet";
  if (step.do === 'wait for job lock')
    return "the follow-up waits for the job lock, so the job can't be polled yet";
  if (isHistoryFull(workflowInfo()))
    return endProblem(run) ?? 'the history of this run is full; the next scheduled read is still made';
  return endProblem(run);
}

function decisionTimeProblem({ state, step }: FollowUpRun): string | undefined {
  if (isDecisionNeeded(state)) return undefined;
  return step.phase === 'needs-decision'
    ? 'another decision was accepted, and the follow-up applies it now'
    : decisionPhaseProblem(step.phase);
}

function decisionProblem(decision: unknown, namedRunId: unknown): string | undefined {
  if (!DELIVERY_DECISIONS.some((each) => each === decision))
    return `decision: must be one of ${DELIVERY_DECISIONS.join(', ')}`;
  if (decision === 'delivered') return undefined;
  if (isHistoryFull(workflowInfo())) return 'the history of this run is full, so no further POST is possible';
  const { runId, firstExecutionRunId } = workflowInfo();
  const permittedRunId = namedRunId ?? firstExecutionRunId;
  if (permittedRunId === runId) return undefined;
  // A reset applies the updates of the previous run again, so only a decision that names this run is valid.
  const reason = runId === firstExecutionRunId ? 'the ID of this run' : 'because a reset made this run';
  return `runId: must be ${runId}, ${reason}; it is ${quote(permittedRunId)}`;
}
