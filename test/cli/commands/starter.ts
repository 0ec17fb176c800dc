import type { NewJob } from '../../../sandbox';
import { type FollowUpCaller, QUICK, queueVariables } from '../../harness/following';
import { temporal } from '../../harness/temporal';
import { command, type Ended } from '../command';

/** One command of the starter in an environment. */
export function starter({ taskQueues }: FollowUpCaller, args: readonly string[], stdin = ''): Promise<Ended> {
  const ui = { TEMPORAL_UI_URL: 'http://ui.example/' };
  const env = { ...temporal().env, ...queueVariables(taskQueues), ...ui };
  return command(args, env, { stdin });
}

/** A new job, and the words of a quick `send` to it. */
export function jobToSendTo(environment: FollowUpCaller, job: NewJob = { turn: { durationMs: 300 } }) {
  const { projectId, jobId } = environment.addJob(job);
  const words = ['send', '--project', projectId, '--job', jobId, '--request-id', 'order-1', ...QUICK_FLAGS];
  const posts = () => environment.posts({ projectId });
  return { projectId, jobId, words, posts, workflowId: `follow-up:${projectId}:${jobId}:order-1` };
}

/** {@link QUICK} as flags. */
export const QUICK_FLAGS = [
  ...['--deadline', QUICK.deadline, '--reconcile', QUICK.reconcile],
  ...['--settle', QUICK.settle, '--confirm', QUICK.confirm],
  ...['--polling-initial', QUICK.polling.initial, '--polling-maximum', QUICK.polling.maximum],
];
