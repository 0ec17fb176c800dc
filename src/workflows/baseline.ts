import type { ApplicationFailure } from '@temporalio/workflow';
import type { ReadTrouble } from '../contract/activities';
import { formatDuration } from '../contract/duration';
import { type AgentJob, isTerminal, jobState } from '../contract/job';
import { nextWait } from '../polling/cadence';
import { followUpFailure, sentSoFar } from './failures';
import type { Run } from './run';
import { afterReading, isLost, isUnauthorized, NO_TROUBLE } from '../polling/trouble';
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
      return waitUntilTerminal(run);
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

/** The job has answered once, so that from here on no single bad answer is believed. */
async function waitUntilTerminal(run: Run): Promise<AgentJob> {
  const { plan } = run.state;
  const startedAt = Date.now();
  let trouble = NO_TROUBLE;
  for (;;) {
    run.enter(isUnauthorized(trouble) ? 'unauthorized' : 'waiting');
    refuseAfterDeadline(run);
    const wait = nextWait(plan.polling, Date.now() - startedAt, trouble, Math.random);
    await run.pause(wait, `waiting: ${run.state.lastAnswer ?? ''}, next in ${formatDuration(wait)}`);
    const { answer, askedAt, heardAt } = await run.read('waiting: read the job');
    if (answer.kind === 'job' && isTerminal(answer.job.status)) return answer.job;
    trouble = afterReading(trouble, answer, heardAt);
    if (isLost(trouble, askedAt, plan.confirmMs)) throw lostJob(run);
  }
}

/** The job answered once, and has been gone for long enough. */
export function lostJob(run: Run): ApplicationFailure {
  const reason = 'The job was there, and the service has answered 404 to every read since.';
  return followUpFailure('JobNotFound', reason, run.state, { httpStatus: 404 });
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

/** @throws ApplicationFailure `DeadlineExceeded` once the deadline has passed: nothing is sent after it */
export function refuseAfterDeadline(run: Run): void {
  if (!run.deadlinePassed) return;
  const reason = `The deadline passed in phase ${run.state.phase} (last answer: ${run.state.lastAnswer ?? 'none'}).`;
  throw followUpFailure('DeadlineExceeded', reason, run.state);
}
