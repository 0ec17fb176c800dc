import { batchMemo, CHUNK_WORKFLOW, MEMO_BATCH } from '../../../src/core/batch/state';
import { BATCH_WORKFLOW } from '../../../src/core/names';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import type { BatchFacts } from './timeline';

const SITUATIONS: Readonly<Record<string, (facts: BatchFacts) => boolean>> = {
  'a batch in chunks': ({ runs }) => runs.some(({ start }) => start.workflowType === CHUNK_WORKFLOW),
  'a batch continues as new': (facts) => endsOf(facts).includes('ContinuedAsNew'),
  'a batch is cancelled': (facts) => endsOf(facts).includes('Canceled'),
  'a batch fails beyond its tolerance': (facts) => failsBy(facts, 'ToleranceExceeded'),
  'a batch is incomplete': (facts) => failsBy(facts, 'BatchIncomplete'),
  'a batch runs again after its termination': (facts) =>
    endsOf(facts).includes('Terminated') && endsOf(facts).at(-1) !== 'Terminated',
  'a batch is reset': ({ runs }) => runs.some((run) => isBatch(run) && run.isReset),
  "somebody else's follow-up is left running": ({ runs }) =>
    runs.some(
      ({ memo }) =>
        'left-running' in (batchMemo({ [MEMO_BATCH]: fromPayload(memo[MEMO_BATCH]) })?.byFailure ?? {}),
    ),
  'a batch is forgotten': ({ told }) => told === null,
  'a batch is done, and has an end for each item': ({ told, names }) => told?.ends.length === names.length,
  'an item runs again by a retry': ({ starts }) =>
    starts.some(({ run }) => run.start.asked?.requestId.startsWith('retry of ') === true),
  'a worker is killed between two starts': ({ log }) => follows(log, /^starts /, /^kill/),
  'a worker is frozen with a permission': ({ log }) => follows(log, /^keep recorded/, /^freeze/),
  'the answer to a start is lost': ({ log }) => follows(log, /^starts /, /^lose, what answer/),
};

/** What is told of items at the end. */
const OUTCOMES = [
  ...['completed', 'failed', 'cancelled', 'terminated', 'FollowUpRejected', 'DeliveryUnknown', 'JobNotFound'],
  ...['DeadlineExceeded', 'conflict', 'gone'],
];

/** The deeds that have had an effect. */
const DEEDS = [
  ...['cancel', 'pause', 'set concurrency', 'retry', 'results', 'retry item', 'delete item', 'cancel item'],
  ...['terminate item', 'foreign', 'terminate', 'reset'],
];

export const SITUATIONS_OF_BATCHES: readonly string[] = [
  ...Object.keys(SITUATIONS),
  ...OUTCOMES.map((outcome) => `an item ends as ${outcome}`),
  ...DEEDS.map((kind) => `of a batch: ${kind}`),
];

export function situationsOfBatch(facts: BatchFacts): string[] {
  const own = Object.entries(SITUATIONS).flatMap(([name, isMet]) => (isMet(facts) ? [name] : []));
  const outcomes = new Set(facts.told?.ends.map(({ outcome }) => `an item ends as ${outcome}`));
  const deeds = new Set(
    facts.done.flatMap(({ act: { kind }, failed, answer }) =>
      failed === null && answer !== 'nothing to do' ? [`of a batch: ${kind}`] : [],
    ),
  );
  return [...own, ...outcomes, ...deeds].filter((name) => SITUATIONS_OF_BATCHES.includes(name));
}

function isBatch({ start }: Run): boolean {
  return start.workflowType === BATCH_WORKFLOW;
}

function endsOf({ runs }: BatchFacts): string[] {
  return runs.filter(isBatch).map(({ status }) => status.replace('WorkflowExecution', ''));
}

function failsBy({ runs }: BatchFacts, type: string): boolean {
  return runs.some((run) => isBatch(run) && run.end.failure?.applicationFailureInfo?.type === type);
}

/** Whether one comes right after the other. */
function follows(log: BatchFacts['log'], first: RegExp, next: RegExp): boolean {
  return log.some(({ what }, index) => first.test(what) && next.test(log[index + 1]?.what ?? ''));
}
