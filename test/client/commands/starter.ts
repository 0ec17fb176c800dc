import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { run } from '../../../src/cli/program';
import type { TurnPlan } from '../../../sandbox';
import { type Environment, QUICK } from '../../harness/environment';
import { temporal } from '../../harness/temporal';

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One command of the starter, in this process. What only a process has is in test/process/starter. */
export async function starter(
  environment: Pick<Environment, 'taskQueue' | 'taskQueues'>,
  args: readonly string[],
  stdin = '',
): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  const code = await run({
    args,
    env: {
      ...temporal().env,
      FOLLOW_UP_TASK_QUEUE: environment.taskQueue,
      AGENT_API_TASK_QUEUE: environment.taskQueues.read,
      AGENT_API_SEND_TASK_QUEUE: environment.taskQueues.send,
      TEMPORAL_UI_URL: 'http://ui.example/',
    },
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    scriptPath: 'src/starter.ts',
    version: '0.0.0',
  });
  return { code, stdout, stderr };
}

/** A new job, and the words of a quick `send` to it. @param turn null for one that ends only when the test says so */
export function jobToSendTo(environment: Environment, turn: TurnPlan | null = { durationMs: 300 }) {
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
