import { weighted } from '../random-source';
import { readBatchMemo, CHUNK_WORKFLOW, MEMO_BATCH } from '../../../src/batch/memo';
import { fromPayload } from '../temporal/history';
import { isBatch } from './oracle';
import { failsWith } from '../situations';
import type { Situations } from '../simulate';
import { type BatchWorld, NO_SUCH_ITEM } from './world';

const BASE_SITUATIONS: Situations<BatchWorld> = {
  'a batch in chunks': ({ runs }) => runs.some(({ start }) => start.workflowType === CHUNK_WORKFLOW),
  'a batch continues as new': (world) => batchStatuses(world).includes('ContinuedAsNew'),
  'a batch is cancelled': (world) => batchStatuses(world).includes('Canceled'),
  'a batch fails because more items failed than maxFailures': (world) =>
    failsWith(world, 'MaxFailuresExceeded'),
  'a batch is incomplete': (world) => failsWith(world, 'BatchIncomplete'),
  'a batch runs again after its termination': (world) =>
    batchStatuses(world).includes('Terminated') && batchStatuses(world).at(-1) !== 'Terminated',
  'a batch is reset': ({ runs }) => runs.some((run) => isBatch(run) && run.isReset),
  'a cancelled batch leaves the follow-up of another client running': ({ runs }) =>
    runs.some(
      ({ memo }) =>
        'left-running' in (readBatchMemo({ [MEMO_BATCH]: fromPayload(memo[MEMO_BATCH]) })?.byFailure ?? {}),
    ),
  'an item waits for the job lock': ({ runs }) =>
    runs.some(({ events }) =>
      events.some((event) => 'activity' in event && event.activity.activityType === 'waitForJobLock'),
    ),
  'a batch is older than the retention': ({ finalReport }) => finalReport === null,
  'a batch reports an outcome for each item': ({ finalReport, names }) =>
    finalReport?.ends.length === names.length,
  'a retry runs an item again': ({ starts }) =>
    starts.some(({ run }) => run.start.requester?.requestId.startsWith('retry of ') === true),
  'a worker is killed between two starts': ({ log }) => occursRightAfter(log, /^starts /, /^kill/),
  'a worker is frozen with a permission': ({ log }) => occursRightAfter(log, /^board recorded/, /^freeze/),
  'the response to a start is lost': ({ log }) => occursRightAfter(log, /^starts /, /^lose response/),
};

/** The outcomes of items. */
const ITEM_OUTCOMES = weighted(
  'completed, failed, cancelled, terminated, FollowUpRejected, DeliveryUnknown, JobNotFound, DeadlineExceeded',
  'conflict, missing',
);

/** Operations that must have an effect in some worlds. */
const EFFECTIVE_OPERATIONS = weighted(
  'cancel, pause, set concurrency, retry, results, retry item, delete item, cancel item, terminate item',
  'foreign, terminate, reset',
);

export const BATCH_SITUATIONS: Situations<BatchWorld> = {
  ...BASE_SITUATIONS,
  ...Object.fromEntries(
    ITEM_OUTCOMES.map((wanted) => [
      `an item ends as ${wanted}`,
      ({ finalReport }: BatchWorld) => finalReport?.ends.some(({ outcome }) => outcome === wanted) === true,
    ]),
  ),
  ...Object.fromEntries(
    EFFECTIVE_OPERATIONS.map((kind) => [
      `an operation has an effect on a batch: ${kind}`,
      ({ performed }: BatchWorld) =>
        performed.some(
          ({ operation, failed, answer }) => operation.kind === kind && !failed && answer !== NO_SUCH_ITEM,
        ),
    ]),
  ),
};

function batchStatuses({ runs }: BatchWorld): string[] {
  return runs.filter(isBatch).map(({ status }) => status.replace('WorkflowExecution', ''));
}

/** Whether an entry that matches `next` comes directly after an entry that matches `first`. */
function occursRightAfter(log: BatchWorld['log'], first: RegExp, next: RegExp): boolean {
  return log.some(({ what }, index) => first.test(what) && next.test(log[index + 1]?.what ?? ''));
}
