import { weighted } from '../luck';
import { batchMemo, CHUNK_WORKFLOW, MEMO_BATCH } from '../../../src/batch/memo';
import { fromPayload } from '../temporal/history';
import { isBatch } from './oracle';
import { failsBy } from '../situations';
import type { Situations } from '../simulate';
import { type BatchWorld, NOTHING } from './world';

const SITUATIONS: Situations<BatchWorld> = {
  'a batch in chunks': ({ runs }) => runs.some(({ start }) => start.workflowType === CHUNK_WORKFLOW),
  'a batch continues as new': (world) => endsOf(world).includes('ContinuedAsNew'),
  'a batch is cancelled': (world) => endsOf(world).includes('Canceled'),
  'a batch fails because more items failed than maxFailures': (world) =>
    failsBy(world, 'MaxFailuresExceeded'),
  'a batch is incomplete': (world) => failsBy(world, 'BatchIncomplete'),
  'a batch runs again after its termination': (world) =>
    endsOf(world).includes('Terminated') && endsOf(world).at(-1) !== 'Terminated',
  'a batch is reset': ({ runs }) => runs.some((run) => isBatch(run) && run.isReset),
  "somebody else's follow-up is left running": ({ runs }) =>
    runs.some(
      ({ memo }) =>
        'left-running' in (batchMemo({ [MEMO_BATCH]: fromPayload(memo[MEMO_BATCH]) })?.byFailure ?? {}),
    ),
  'an item waits for the job lock': ({ runs }) =>
    runs.some(({ events }) =>
      events.some((event) => 'activity' in event && event.activity.activityType === 'waitForJobLock'),
    ),
  'a batch is forgotten': ({ told }) => told === null,
  'a batch is done, and has an end for each item': ({ told, names }) => told?.ends.length === names.length,
  'an item runs again by a retry': ({ starts }) =>
    starts.some(({ run }) => run.start.asked?.requestId.startsWith('retry of ') === true),
  'a worker is killed between two starts': ({ log }) => follows(log, /^starts /, /^kill/),
  'a worker is frozen with a permission': ({ log }) => follows(log, /^keep recorded/, /^freeze/),
  'the answer to a start is lost': ({ log }) => follows(log, /^starts /, /^lose answer/),
};

/** What is told of items at the end. */
const OUTCOMES = weighted(
  'completed, failed, cancelled, terminated, FollowUpRejected, DeliveryUnknown, JobNotFound, DeadlineExceeded',
  'conflict, gone',
);

/** The deeds that have had an effect. */
const DEEDS = weighted(
  'cancel, pause, set concurrency, retry, results, retry item, delete item, cancel item, terminate item',
  'foreign, terminate, reset',
);

export const SITUATIONS_OF_BATCHES: Situations<BatchWorld> = {
  ...SITUATIONS,
  ...Object.fromEntries(
    OUTCOMES.map((wanted) => [
      `an item ends as ${wanted}`,
      ({ told }: BatchWorld) => told?.ends.some(({ outcome }) => outcome === wanted) === true,
    ]),
  ),
  ...Object.fromEntries(
    DEEDS.map((kind) => [
      `of a batch: ${kind}`,
      ({ done }: BatchWorld) =>
        done.some(({ act, failed, answer }) => act.kind === kind && !failed && answer !== NOTHING),
    ]),
  ),
};

function endsOf({ runs }: BatchWorld): string[] {
  return runs.filter(isBatch).map(({ status }) => status.replace('WorkflowExecution', ''));
}

/** Whether one comes right after the other. */
function follows(log: BatchWorld['log'], first: RegExp, next: RegExp): boolean {
  return log.some(({ what }, index) => first.test(what) && next.test(log[index + 1]?.what ?? ''));
}
