import type { ReadTrouble } from '../contract/activities';
import { formatDuration } from '../contract/duration';
import { type AgentJob, jobState } from '../contract/job';
import { nextWait } from '../polling/cadence';
import { lostJob, refuseAfterDeadline } from './ends';
import { followUpFailure, sentSoFar } from './failures';
import type { Run } from './run';
import { afterReading, isLost, NO_TROUBLE } from '../polling/trouble';
import { waitUntilTerminal } from './wait';
import { gate } from './when-active';

/**
 * Reads the job as it is before a send: the baseline by which every later answer is judged.
 *
 * Answers that prove that the message can't be sent end the follow-up; an agent service that can't be reached is
 * waited for until the deadline. Where the job is still active, `whenActive` decides.
 *
 * @throws ApplicationFailure `JobNotFound`, `FollowUpRejected` or `DeadlineExceeded`
 */
export async function readBaseline(run: Run): Promise<AgentJob> {
  const job = await readUntilAnswered(run);
  run.state.baseline = jobState(job);
  switch (gate(job.status, run.state.plan.whenActive)) {
    case 'send':
      return job;
    case 'wait':
      return waitUntilTerminal(run, job);
    case 'reject':
      throw followUpFailure(
        'FollowUpRejected',
        `The job is ${job.status}, and whenActive is reject.`,
        run.state,
      );
  }
}

async function readUntilAnswered(run: Run): Promise<AgentJob> {
  let trouble = NO_TROUBLE;
  for (;;) {
    refuseAfterDeadline(run);
    const { answer, askedAt, heardAt } = await run.read('baseline: read the job');
    if (answer.kind === 'job') return answer.job;
    trouble = afterReading(trouble, answer, heardAt);
    // Once the message may have arrived, a bad answer is no end any more: the caller needs to know what became of it.
    if (run.state.delivery.verdict !== 'unknown') refuseHopeless(run, answer);
    else if (isLost(trouble, askedAt, run.state.plan.confirmMs)) throw lostJob(run);
    const wait = nextWait(run.state.plan.polling, 0, trouble, Math.random);
    await run.pause(
      wait,
      `${answer.message}; ${sentSoFar(run.state.delivery)}; next try in ${formatDuration(wait)}`,
    );
  }
}

function refuseHopeless(run: Run, trouble: ReadTrouble): void {
  const { httpStatus, message } = trouble;
  if (httpStatus === 404) {
    throw followUpFailure('JobNotFound', `The service knows no such job: ${message}.`, run.state, trouble);
  }
  if (httpStatus === 400 || httpStatus === 401 || httpStatus === 403) {
    throw followUpFailure('FollowUpRejected', `The job can't be read: ${message}.`, run.state, trouble);
  }
}
