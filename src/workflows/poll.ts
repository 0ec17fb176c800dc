import type { AgentJob } from '../contract/job';
import { afterAnswer } from './evidence';
import { countAnswer } from '../polling/observed';
import type { Run } from './run';
import type { WatchState } from './state';
import { afterReading } from '../polling/trouble';

/** One read since the send: it is counted, and what it shows is kept as evidence. */
export async function poll(run: Run, watching: WatchState): Promise<void> {
  const { state } = run;
  const { answer, askedAt, heardAt } = await run.read(`poll ${state.polls + 1}`);
  state.polls += 1;
  state.observed = countAnswer(state.observed, answer.kind === 'job' ? answer.job.status : answer.label);
  watching.trouble = afterReading(watching.trouble, answer, heardAt);
  if (answer.kind === 'job') witness(watching, answer.job, askedAt, heardAt);
}

/** Keeps an answer about the job as evidence; the POST's own answer is one too. */
export function witness(watching: WatchState, job: AgentJob, askedAt: number, heardAt: number): void {
  watching.sightings = afterAnswer(watching.sightings, { job, askedAt, heardAt });
  watching.askedAt = askedAt;
}

/** How the last answer is told in the summary of the timer that follows it. */
export function lastAnswerInWords({ state }: Run): string {
  const source = state.polls === 0 ? 'sent' : `poll ${state.polls}`;
  return `${source}: ${state.lastAnswer ?? 'no answer yet'}`;
}
