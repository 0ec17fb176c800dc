import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { TurnPlan } from '../../../sandbox';
import { sharedEnvironment } from '../../harness/shared-environment';
import { jobToSendTo } from '../../client/commands/starter';
import { temporal } from '../../harness/temporal';
import { ROOT } from '../../harness/worker-process';
import { StarterProcess } from './starter-process';

const open = sharedEnvironment();

/** A `send` to a new job, as a process. */
async function send(turn: TurnPlan | null, more: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const environment = await open();
  const job = jobToSendTo(environment, turn);
  const start = (args: readonly string[], stdin?: string): StarterProcess =>
    StarterProcess.start(args, { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env }, stdin);
  return { environment, job, start, process: start([...job.words, ...more], 'Fix it.\n') };
}

it('prints nothing but its document through npm, as the docs call it', async () => {
  const { taskQueue } = await open();
  const env = { ...temporal().env, FOLLOW_UP_TASK_QUEUE: taskQueue };
  const call = 'npm run -s starter -- list --project nobody-has-this --json | node -e ' + `'${PARSE}'`;
  const { stdout } = await promisify(execFile)('sh', ['-c', call], { cwd: ROOT, env });
  expect(JSON.parse(stdout)).toEqual([]);
}, 60_000);

/** Reads JSON from stdin and prints it, or fails. */
const PARSE = 'process.stdout.write(JSON.stringify(JSON.parse(require("fs").readFileSync(0, "utf8"))))';

describe('the starter as a process', () => {
  it.concurrent(
    'reads the prompt from stdin, writes JSON to stdout and the rest to stderr, and needs no key',
    async () => {
      const sent = await send({ durationMs: 300 }, ['--prompt-file', '-', '--json']);
      const { code, stdout, stderr } = await sent.process.ended();
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(JSON.parse(stdout)).toMatchObject({
        status: 'completed',
        followUp: { requestId: 'order-1' },
      });
      expect(stderr).toContain(sent.job.workflowId);
      expect(sent.job.posts().map((post) => post.prompt?.text)).toEqual(['Fix it.\n']);
    },
  );

  it.concurrent.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('leaves the follow-up running at %s and says how to go on', async (signal, code) => {
    const sent = await send(null, ['--prompt', 'x']);
    await sent.process.says('watching');
    sent.process.signal(signal);
    const ended = await sent.process.ended();
    const { workflowId, posts, ...key } = sent.job;
    expect(ended).toMatchObject({ code, signal: null, stdout: '' });
    expect(ended.stderr).toContain(`npm run starter -- watch ${workflowId}`);
    expect(ended.stderr).toContain(`npm run starter -- cancel ${workflowId}`);
    sent.environment.sandbox.changeJob(key, { status: 'completed' });
    expect((await sent.start(['watch', workflowId]).ended()).code).toBe(0);
    expect(posts()).toHaveLength(1);
  });

  it.concurrent('says when no worker is there, and that nothing is lost', async () => {
    const taskQueue = `nobody-${randomUUID()}`;
    const sent = await send({ durationMs: 300 }, ['--prompt', 'x'], { FOLLOW_UP_TASK_QUEUE: taskQueue });
    await sent.process.says(
      `no worker answers on task queue ${taskQueue} (yet); the follow-up waits, nothing is lost`,
    );
    sent.process.signal('SIGINT');
    expect((await sent.process.ended()).code).toBe(130);
  });

  it.concurrent(
    'sets limits on the task queues that its environment names, for the next one to see',
    async () => {
      const name = randomUUID().slice(0, 8);
      const env = { AGENT_API_TASK_QUEUE: `read-${name}`, AGENT_API_SEND_TASK_QUEUE: `send-${name}` };
      const limits = (...args: string[]) => StarterProcess.start(['limits', ...args, '--json'], env).ended();

      const set = await limits('set', '--sends-per-project', '90/h', '--project-weight', 'docs=3');
      const shown = await limits('show');

      expect({ code: set.code, shown: shown.code }).toEqual({ code: 0, shown: 0 });
      expect(JSON.parse(shown.stdout)).toMatchObject({
        sends: { taskQueue: `send-${name}`, perProject: { rate: '90/h' }, weights: { docs: 3 } },
        reads: { taskQueue: `read-${name}`, perProject: null, weights: { docs: 3 } },
      });
      expect((await limits('set', '--sends-total', '90')).code).toBe(2);
    },
  );

  it.concurrent.each([[['--help']], [['list', '--json']]])(
    'ends quietly when the reader of its stdout goes away: %j',
    async (args) => {
      const { taskQueue } = await open();
      const starter = StarterProcess.start(args, { FOLLOW_UP_TASK_QUEUE: taskQueue });
      starter.closeStdout();
      const { code, stderr } = await starter.ended();
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stderr).not.toContain('EPIPE');
    },
  );

  it.concurrent('has one message and no stack for a Temporal that is not there', async () => {
    const sent = await send({ durationMs: 300 }, ['--prompt', 'x'], { TEMPORAL_ADDRESS: '127.0.0.1:1' });
    const { code, stdout, stderr } = await sent.process.ended();
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /^error: Can't reach Temporal at 127\.0\.0\.1:1: nothing listens there \(ECONNREFUSED\)\.\n/,
    );
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});
