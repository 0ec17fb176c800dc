import { ApplicationFailure, condition, defineQuery, defineUpdate, setHandler } from '@temporalio/workflow';
import { parseDuration } from '../contract/duration';
import { QUERY_PROGRESS, UPDATE_EXTEND_DEADLINE, UPDATE_POLL_NOW } from '../contract/names';
import type { FollowUpProgress } from '../contract/progress';
import type { Run } from './run';
import { progressOf } from './state';

export const progressQuery = defineQuery<FollowUpProgress>(QUERY_PROGRESS);
export const pollNowUpdate = defineUpdate<FollowUpProgress>(UPDATE_POLL_NOW);
export const extendDeadlineUpdate = defineUpdate<FollowUpProgress, [duration: string]>(
  UPDATE_EXTEND_DEADLINE,
);

/** Opens the run to whoever watches or steers it. Each update answers with the progress after it. */
export function receiveOperators(run: Run): void {
  const { state } = run;
  setHandler(progressQuery, () => progressOf(state), {
    description:
      'Where the follow-up stands: phase, last job, delivery, evidence, counts, next read, deadline.',
  });
  setHandler(
    pollNowUpdate,
    async () => {
      // A read that is under way was asked for before this call, so that the next one is waited for.
      const before = run.readsAsked;
      run.pollNow();
      await condition(() => run.over || run.readsAnswered > before);
      return progressOf(state);
    },
    {
      description: 'Reads the job now instead of at the next interval, and answers when it has been read.',
      validator: () => {
        if (run.sending) throw refused('the message is being sent; there is nothing to poll yet');
      },
    },
  );
  setHandler(
    extendDeadlineUpdate,
    (duration) => {
      const parsed = parseDuration(duration);
      if ('ms' in parsed) state.deadlineAt = Math.max(state.deadlineAt, Date.now() + parsed.ms);
      run.show();
      return progressOf(state);
    },
    {
      description: 'Moves the deadline to now + the duration ("90m"), never to an earlier time than it has.',
      validator: (duration) => {
        const parsed = parseDuration(duration);
        if ('problem' in parsed) throw refused(`duration: ${parsed.problem}`);
      },
    },
  );
}

/** An update that is refused by its validator leaves no trace in history. */
function refused(reason: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'InvalidUpdate', message: reason, nonRetryable: true });
}
