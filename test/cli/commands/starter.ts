import type { NewJob } from '../../../sandbox';
import { type BatchOfTest, SWIFT } from '../../harness/batch-of-test';
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

/** A batch as JSON Lines. */
export function jsonl({ requests }: BatchOfTest): string {
  const lines = requests.map(({ projectId, jobId, prompt }) => ({ project: projectId, job: jobId, prompt }));
  return lines.map((line) => JSON.stringify(line) + '\n').join('');
}

/** What the lines of `--json` hold: one of each item, and of the whole at the end. */
export function jsonLines(text: string): { readonly workflowId?: string; readonly settledAt?: string }[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as object);
}
