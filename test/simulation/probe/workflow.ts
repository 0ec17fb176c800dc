import {
  type ActivityOptions,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  defineUpdate,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
  sleep,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { ApplicationFailure, defineSearchAttributeKey } from '@temporalio/common';
import type { ActivityFailure, TimeoutFailure } from '@temporalio/common';
import type { ProbeActivities } from './activities';

/**
 * The steps of the probe, which run one after another. Activities and timers run in the background. A text is one of these commands:
 * `timer LABEL MS`, `cancel LABEL`, `wait ENTRY` (until the log has the entry), `memo NAME`, `phase VALUE`, `info ids`, `info kept`.
 */
export type Step =
  | { readonly activity: string; readonly attempts: string; readonly options: ActivityOptions | 'local' }
  | { readonly again: readonly Step[] }
  | string;

type Failure = ActivityFailure & TimeoutFailure & ApplicationFailure;

const PHASE = defineSearchAttributeKey('FollowUpPhase', 'KEYWORD');

/** A workflow that performs the steps of its input, and logs its events in their order. */
export async function probe(steps: readonly Step[]): Promise<readonly string[]> {
  const log: string[] = [];
  const scopes = new Map<string, CancellationScope>();
  const backgroundWork: Promise<void>[] = [];
  const record = (label: string, what: unknown) => void log.push(`${label}: ${String(what)}`);

  setHandler(defineQuery<readonly string[]>('seen'), () => log);
  setHandler(defineSignal<[string]>('signal'), (what) => record('signal', what));
  const answer = (what: string) => {
    record('update', what);
    if (what === 'fail') throw ApplicationFailure.create({ message: 'the update failed' });
    return `result of ${what}`;
  };
  const validator = (what: string) => {
    if (what === 'reject') throw new Error('unknown update');
  };
  setHandler(defineUpdate<string, [string]>('update'), answer, { validator });

  const runInBackground = (label: string, work: () => Promise<unknown>) => {
    const scope = new CancellationScope();
    scopes.set(label, scope);
    const end = scope.run(work).then(
      (result) => record(label, result ?? 'over'),
      (error: unknown) => record(label, describeError(error)),
    );
    backgroundWork.push(end);
  };
  void CancellationScope.current().cancelRequested.catch((error: unknown) =>
    record('workflow', describeError(error)),
  );

  const runStep = async (step: Step) => {
    if (typeof step === 'string') return runTextStep(step);
    if ('again' in step) return continueAsNew<typeof probe>(step.again);
    const time = { startToCloseTimeout: '40 seconds' } as const;
    const { activity, attempts, options } = step;
    const { perform } =
      options === 'local'
        ? proxyLocalActivities<ProbeActivities>(time)
        : proxyActivities<ProbeActivities>({ ...time, ...options });
    runInBackground(activity, () => perform(activity, attempts));
  };
  const runTextStep = async (step: string) => {
    const [verb, label = '', ms] = step.split(' ');
    if (verb === 'timer') runInBackground(label, () => sleep(Number(ms)));
    else if (verb === 'cancel') scopes.get(label)?.cancel();
    else if (verb === 'wait') await condition(() => log.includes(step.slice('wait '.length)));
    else if (verb === 'memo') upsertMemo({ [label]: 1 });
    else if (verb === 'phase') upsertSearchAttributes([{ key: PHASE, value: label }]);
    else record(label, workflowState(label));
  };
  try {
    for (const step of steps) await runStep(step);
    await Promise.all(backgroundWork);
  } catch (error) {
    // The log must have the ends of all activities and timers that were cancelled with the workflow.
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => Promise.all(backgroundWork));
    throw error;
  }
  return log;
}

function workflowState(what: string): string {
  const { runId, firstExecutionRunId, continuedFromExecutionRunId, memo, typedSearchAttributes } =
    workflowInfo();
  if (what === 'kept') return JSON.stringify({ memo, phase: typedSearchAttributes.get(PHASE) });
  const isFirst = runId === firstExecutionRunId;
  return JSON.stringify({ isFirst, continues: continuedFromExecutionRunId === firstExecutionRunId });
}

/** Formats a failure and its causes, with all facts that a workflow can use. */
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { retryState, timeoutType, lastHeartbeatDetails, details } = error as Partial<Failure>;
  const facts = JSON.stringify([error.message, retryState, timeoutType, lastHeartbeatDetails, details]);
  return `${error.name} ${facts}${error.cause === undefined ? '' : ` < ${describeError(error.cause)}`}`;
}
