import {
  type ActivityOptions,
  CancellationScope,
  type ChildWorkflowOptions,
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
  startChild,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { ApplicationFailure, defineSearchAttributeKey } from '@temporalio/common';
import type { Attempts, ProbeActivities } from './activities';
import { inWords } from './in-words';

export type ChildOptions = Pick<
  ChildWorkflowOptions,
  'workflowId' | 'workflowIdReusePolicy' | 'parentClosePolicy' | 'cancellationType'
>;

/** What the probe does, one after the other; what has a label goes on beside what follows. */
export type Step =
  | { readonly activity: string; readonly attempts: Attempts; readonly options?: ActivityOptions }
  | { readonly local: string; readonly attempts: Attempts }
  | { readonly timer: string; readonly ms: number }
  | { readonly child: string; readonly steps: readonly Step[]; readonly options: ChildOptions }
  | { readonly cancel: string }
  /** Until the probe has seen this. */
  | { readonly wait: string }
  | { readonly memo: Readonly<Record<string, unknown>> }
  | { readonly phase: string }
  | { readonly info: 'ids' | 'kept' }
  | { readonly again: readonly Step[] };

const PHASE = defineSearchAttributeKey('FollowUpPhase', 'KEYWORD');

export const seen = defineQuery<readonly string[]>('seen');
export const tell = defineSignal<[string]>('tell');
export const ask = defineUpdate<string, [string]>('ask');

/** A workflow that does as it is told, and tells what it sees, in the order in which it sees it. */
export async function probe(steps: readonly Step[]): Promise<readonly string[]> {
  const log: string[] = [];
  const scopes = new Map<string, CancellationScope>();
  const under: Promise<void>[] = [];
  const sees = (label: string, what: unknown) => void log.push(`${label}: ${String(what)}`);

  setHandler(seen, () => log);
  setHandler(tell, (what) => {
    sees('told', what);
  });
  setHandler(
    ask,
    (what) => {
      sees('asked', what);
      if (what === 'fail') throw ApplicationFailure.create({ message: 'no answer' });
      return `answer to ${what}`;
    },
    {
      validator: (what) => {
        if (what === 'refuse') throw new Error('no such question');
      },
    },
  );

  const beside = (label: string, work: () => Promise<unknown>) => {
    const scope = new CancellationScope();
    scopes.set(label, scope);
    const end = scope.run(work).then(
      (result) => {
        sees(label, result ?? 'over');
      },
      (error: unknown) => {
        sees(label, inWords(error));
      },
    );
    under.push(end);
  };
  void CancellationScope.current().cancelRequested.catch((error: unknown) => {
    sees('workflow', inWords(error));
  });

  const child = async (label: string, { steps: its, options }: Extract<Step, { readonly child: string }>) => {
    const handle = await startChild(probe, { ...options, args: [its] });
    sees(label, 'started');
    return (await handle.result()).join(', ');
  };

  const take = async (step: Step) => {
    if ('activity' in step) {
      const { perform } = proxyActivities<ProbeActivities>({
        startToCloseTimeout: '1 minute',
        ...step.options,
      });
      beside(step.activity, () => perform(step.activity, step.attempts));
    } else if ('local' in step) {
      const { perform } = proxyLocalActivities<ProbeActivities>({ startToCloseTimeout: '1 minute' });
      beside(step.local, () => perform(step.local, step.attempts));
    } else if ('timer' in step) beside(step.timer, () => sleep(step.ms));
    else if ('child' in step) beside(step.child, () => child(step.child, step));
    else if ('cancel' in step) scopes.get(step.cancel)?.cancel();
    else if ('wait' in step) await condition(() => log.includes(step.wait));
    else if ('memo' in step) upsertMemo(step.memo);
    else if ('phase' in step) upsertSearchAttributes([{ key: PHASE, value: step.phase }]);
    else if ('again' in step) await continueAsNew<typeof probe>(step.again);
    else sees(step.info, known(step.info));
  };
  try {
    for (const step of steps) await take(step);
    await Promise.all(under);
  } catch (error) {
    // What is cancelled with the workflow ends, so that all can be seen.
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => Promise.all(under));
    throw error;
  }
  return log;
}

function known(what: 'ids' | 'kept'): string {
  const { runId, firstExecutionRunId, continuedFromExecutionRunId, memo, typedSearchAttributes } =
    workflowInfo();
  if (what === 'kept') return JSON.stringify({ memo, phase: typedSearchAttributes.get(PHASE) });
  return JSON.stringify({
    isFirst: runId === firstExecutionRunId,
    continues: continuedFromExecutionRunId === firstExecutionRunId,
  });
}
