import { ApplicationFailure, defineQuery, defineUpdate, setHandler } from '@temporalio/workflow';
import {
  type BatchProgress,
  QUERY_BATCH_PROGRESS,
  UPDATE_CANCEL_RUNNING,
  UPDATE_PAUSE,
  UPDATE_RESUME,
  UPDATE_SET_CONCURRENCY,
} from '../../core/batch-workflows';
import { concurrencyProblem } from './check-batch';
import type { BatchState } from './state';

const batchProgressQuery = defineQuery<BatchProgress>(QUERY_BATCH_PROGRESS);
const pauseUpdate = defineUpdate<BatchProgress>(UPDATE_PAUSE);
const resumeUpdate = defineUpdate<BatchProgress>(UPDATE_RESUME);
const setConcurrencyUpdate = defineUpdate<BatchProgress, [concurrency: number]>(UPDATE_SET_CONCURRENCY);
const cancelRunningUpdate = defineUpdate<BatchProgress>(UPDATE_CANCEL_RUNNING);

/**
 * Registers the query and the updates of a batch. Each update returns the progress after it.
 *
 * @param progress where the batch stands
 * @param changed called after each change
 */
export function receiveOperators(
  state: BatchState,
  progress: () => BatchProgress,
  changed: () => void,
): void {
  const change = (make: () => void): BatchProgress => {
    make();
    changed();
    return progress();
  };
  setHandler(batchProgressQuery, progress, {
    description: 'Where the batch stands: counts, open follow-ups, pages, the first failures.',
  });
  setHandler(pauseUpdate, () => change(() => (state.paused = true)), {
    description: 'Starts no further item until resume; those that run go on.',
  });
  setHandler(resumeUpdate, () => change(() => (state.paused = false)), {
    description: 'Goes on after pause.',
  });
  setHandler(setConcurrencyUpdate, (concurrency) => change(() => (state.concurrency = concurrency)), {
    description:
      'How many follow-ups may be open at a time, 1 to 1,000. Those that are open beyond it go on.',
    validator: (concurrency) => {
      const problem = concurrencyProblem(concurrency);
      if (problem === undefined) return;
      throw ApplicationFailure.create({ type: 'InvalidUpdate', message: problem, nonRetryable: true });
    },
  });
  setHandler(cancelRunningUpdate, () => change(() => (state.ending = 'cancel-running')), {
    description: 'Cancels the batch and the follow-ups that run. To leave them running, cancel the workflow.',
  });
}
