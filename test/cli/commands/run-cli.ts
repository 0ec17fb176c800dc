import { Readable } from 'node:stream';
import type { NewJob } from '../../../sandbox';
import { runCli as runProgram } from '../../../src/cli/program';
import { type TestBatch, FASTEST_OPTIONS } from '../../harness/test-batch';
import { type FollowUpTestClient, taskQueueVariables } from '../../harness/follow-up-under-test';
import { temporal } from '../../harness/temporal';

/** Runs the CLI in this process. test/starter.process.test.ts runs the CLI as a process. */
async function runInProcess(args: readonly string[], env: NodeJS.ProcessEnv, stdin = '') {
  let stdout = '';
  let stderr = '';
  const code = await runProgram({
    args,
    env,
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    commandPrefix: 'npm run starter --',
    version: '0.0.0',
  });
  return { code, stdout, stderr };
}

/** In an environment. */
export function runCli({ taskQueues }: FollowUpTestClient, args: readonly string[], stdin?: string) {
  const ui = { TEMPORAL_UI_URL: 'http://ui.example/' };
  return runInProcess(args, { ...temporal().env, ...taskQueueVariables(taskQueues), ...ui }, stdin);
}

/** Where nothing listens: what it says, it says before it connects. */
export function runCliOffline(args: readonly string[], stdin?: string) {
  const env = { TEMPORAL_CONFIG_FILE: '/nowhere/temporal.toml', TEMPORAL_ADDRESS: '127.0.0.1:1' };
  return runInProcess(args, env, stdin);
}

/** A new job, and the words of a swift `send` to it. */
export function newSendCommand(environment: FollowUpTestClient, job: NewJob = {}) {
  const { projectId, jobId } = environment.addJob(job);
  const words = ['send', '--project', projectId, '--job', jobId, '--request-id', 'order-1', ...FASTEST_FLAGS];
  const posts = () => environment.posts({ projectId });
  return { projectId, jobId, words, posts, workflowId: `follow-up:${projectId}:${jobId}:order-1` };
}

/** {@link FASTEST_OPTIONS} as flags. */
export const FASTEST_FLAGS = [
  ...['--when-active', FASTEST_OPTIONS.whenActive],
  ...['--deadline', FASTEST_OPTIONS.deadline, '--reconcile-timeout', FASTEST_OPTIONS.reconcileTimeout],
  ...['--pr-link-timeout', FASTEST_OPTIONS.prLinkTimeout, '--max-staleness', FASTEST_OPTIONS.maxStaleness],
  ...[
    '--polling-initial',
    FASTEST_OPTIONS.polling.initial,
    '--polling-maximum',
    FASTEST_OPTIONS.polling.maximum,
  ],
];

/** A batch as JSON Lines. */
export function jsonl({ requests }: TestBatch): string {
  return requests.map((request) => JSON.stringify(request) + '\n').join('');
}

/** What the lines of `--json` hold: one of each item, and of the whole at the end. */
export function jsonLines(text: string) {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as { workflowId?: string; endedAt?: string });
}
