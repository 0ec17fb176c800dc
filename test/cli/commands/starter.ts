import type { NewJob } from '../../../sandbox';
import { SWIFT } from '../../harness/batch-of-test';
import { type FollowUpCaller, queueVariables } from '../../harness/following';
import { temporal } from '../../harness/temporal';
import { command, type Ended } from '../command';

/** One command of the starter in an environment. */
export function starter({ taskQueues }: FollowUpCaller, args: readonly string[], stdin = ''): Promise<Ended> {
  const ui = { TEMPORAL_UI_URL: 'http://ui.example/' };
  const env = { ...temporal().env, ...queueVariables(taskQueues), ...ui };
  return command(args, env, { stdin });
}

/** A new job, and the words of a swift `send` to it. */
export function jobToSendTo(environment: FollowUpCaller, job: NewJob = {}) {
  const { projectId, jobId } = environment.addJob(job);
  const words = ['send', '--project', projectId, '--job', jobId, '--request-id', 'order-1', ...SWIFT_FLAGS];
  const posts = () => environment.posts({ projectId });
  return { projectId, jobId, words, posts, workflowId: `follow-up:${projectId}:${jobId}:order-1` };
}

/** {@link SWIFT} as flags. */
export const SWIFT_FLAGS = [
  ...['--deadline', SWIFT.deadline, '--reconcile', SWIFT.reconcile],
  ...['--settle', SWIFT.settle, '--confirm', SWIFT.confirm],
  ...['--polling-initial', SWIFT.polling.initial, '--polling-maximum', SWIFT.polling.maximum],
];
