import type { Tally, Trouble } from '../contract/activities';
import { formatDuration } from '../contract/duration';
import { type AgentJob, isTerminal, sameState } from '../contract/job';
import { nextWait } from '../polling/cadence';
import { afterReading, isLost, isUnauthorized, NO_TROUBLE } from '../polling/trouble';
import { lostJob, refuseAfterDeadline } from './ends';
import { readPatiently } from './patient';
import type { Heard, Run } from './run';
import { mayBePatient } from './watch-step';

/** What the reads before a send have shown. They are no polls: no receipt counts them. */
interface Waiting {
  job: AgentJob;
  reads: number;
  steady: boolean;
  askedAt: number;
  trouble: Trouble;
}

/**
 * Waits until a job that is not at rest is. It has answered once, so that from here on no single bad answer is believed.
 *
 * @throws ApplicationFailure `JobNotFound` or `DeadlineExceeded`
 */
export async function waitUntilTerminal(run: Run, active: AgentJob): Promise<AgentJob> {
  const { plan } = run.state;
  const since = Date.now();
  const waiting: Waiting = { job: active, reads: 0, steady: false, askedAt: since, trouble: NO_TROUBLE };
  for (;;) {
    run.enter(isUnauthorized(waiting.trouble) ? 'unauthorized' : 'waiting');
    refuseAfterDeadline(run);
    const wait = nextWait(plan.polling, Date.now() - since, waiting.trouble, Math.random);
    await run.pause(wait, `waiting: ${run.state.lastAnswer ?? ''}, next in ${formatDuration(wait)}`);
    if (mayBePatient(plan.polling, waiting.reads, waiting) && run.mayBePatient()) {
      const { job: known, trouble } = waiting;
      await readPatiently(run, {
        summary: `waiting: read the job, by retries, until ${known.status} changes`,
        known,
        since,
        trouble,
        count: (tally) => {
          count(run, waiting, tally);
        },
        take: (heard) => {
          run.hear(heard.answer);
          take(waiting, heard);
        },
      });
    } else {
      take(waiting, await run.read('waiting: read the job'));
    }
    if (isTerminal(waiting.job.status)) return waiting.job;
    if (isLost(waiting.trouble, waiting.askedAt, plan.confirmMs)) throw lostJob(run);
  }
}

function take(waiting: Waiting, { answer, askedAt, heardAt }: Heard): void {
  waiting.reads += 1;
  waiting.askedAt = askedAt;
  waiting.trouble = afterReading(waiting.trouble, answer, heardAt);
  if (answer.kind !== 'job') return;
  waiting.steady = sameState(waiting.job, answer.job);
  waiting.job = answer.job;
}

function count({ state }: Run, waiting: Waiting, tally: Tally): void {
  waiting.reads += tally.polls;
  if (tally.polls > 0) waiting.trouble = tally.trouble;
  if (tally.sightings > 0) waiting.steady = true;
  state.lastAnswer = tally.lastAnswer ?? state.lastAnswer;
}
