import { randomUUID } from 'node:crypto';
import type { TurnPlan } from '../../../sandbox';
import { type Environment, QUICK } from '../../harness/environment';
import { temporal } from '../../harness/temporal';
import { command, type Ended } from '../command';

/** One command of the starter in an environment. */
export function starter(
  environment: Pick<Environment, 'taskQueue' | 'taskQueues'>,
  args: readonly string[],
  stdin = '',
): Promise<Ended> {
  const env = {
    ...temporal().env,
    FOLLOW_UP_TASK_QUEUE: environment.taskQueue,
    AGENT_API_TASK_QUEUE: environment.taskQueues.read,
    AGENT_API_SEND_TASK_QUEUE: environment.taskQueues.send,
    TEMPORAL_UI_URL: 'http://ui.example/',
  };
  return command(args, env, { stdin });
}

/** A new job, and the words of a quick `send` to it. @param turn null for one that ends only when the test says so */
export function jobToSendTo(
  environment: Pick<Environment, 'sandbox'>,
  turn: TurnPlan | null = { durationMs: 300 },
) {
  const { projectId, jobId } = environment.sandbox.addJob({
    projectId: `cli-${randomUUID().slice(0, 8)}`,
    turn: turn ?? { durationMs: null },
  });
  const words = ['send', '--project', projectId, '--job', jobId, '--request-id', 'order-1', ...QUICK_FLAGS];
  const posts = () => environment.sandbox.journal.entries({ projectId, operation: 'message' });
  return { projectId, jobId, words, posts, workflowId: `follow-up:${projectId}:${jobId}:order-1` };
}

/** {@link QUICK} as flags. */
export const QUICK_FLAGS = [
  ...['--deadline', QUICK.deadline, '--reconcile', QUICK.reconcile],
  ...['--settle', QUICK.settle, '--confirm', QUICK.confirm],
  ...['--polling-initial', QUICK.polling.initial, '--polling-maximum', QUICK.polling.maximum],
];
