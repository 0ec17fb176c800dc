import { Readable } from 'node:stream';
import type { NewJob } from '../../../sandbox';
import { runCli as runProgram } from '../../../src/cli/program';
import { type TestBatch, FASTEST_OPTIONS } from '../../harness/test-batch';
import { type FollowUpTestClient, taskQueueVariables } from '../../harness/follow-up-under-test';
import { temporal } from '../../harness/temporal';

/** Runs the CLI in this process. test/cli/starter.process.test.ts runs the CLI as a separate process. */
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

/** Runs the CLI with the Temporal server and the task queues of an environment. */
export function runCli({ taskQueues }: FollowUpTestClient, args: readonly string[], stdin?: string) {
  const ui = { TEMPORAL_UI_URL: 'http://ui.example/' };
  return runInProcess(args, { ...temporal().env, ...taskQueueVariables(taskQueues), ...ui }, stdin);
}

/** Runs the CLI with an address at which no server listens, for tests of errors before or during connecting. */
export function runCliOffline(args: readonly string[], stdin?: string) {
  return runCliAt('127.0.0.1:1', args, stdin);
}

/** Runs the CLI with another Temporal server. @param address `host:port` of the server */
export function runCliAt(address: string, args: readonly string[], stdin?: string) {
  const env = { TEMPORAL_CONFIG_FILE: '/nowhere/temporal.toml', TEMPORAL_ADDRESS: address };
  return runInProcess(args, env, stdin);
}

/** Adds a job, and returns the arguments of a `send` command to the job with short durations. */
export function newSendCommand(environment: FollowUpTestClient, job: NewJob = {}) {
  const { projectId, jobId } = environment.addJob(job);
  const args = ['send', '--project', projectId, '--job', jobId, '--request-id', 'order-1', ...FASTEST_FLAGS];
  const posts = () => environment.posts({ projectId });
  return { projectId, jobId, args, posts, workflowId: `follow-up:${projectId}:${jobId}:order-1` };
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

/** Formats the requests of a batch as JSON Lines. */
export function jsonl({ requests }: TestBatch): string {
  return requests.map((request) => JSON.stringify(request) + '\n').join('');
}

/** Parses the output of `--json`: a line for each item, and the last line for the whole batch. */
export function jsonLines(text: string) {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as { workflowId?: string; endedAt?: string });
}
