import { createServer } from 'node:http2';
import { afterEach, beforeAll, expect, it } from '@jest/globals';
import { eventually } from '../../tools/lib/eventually';
import { grpcServer, listen, respondWithGrpcStatus, UNIMPLEMENTED } from '../temporal/grpc-server';
import { runCliAt, runCliOffline } from './commands/run-cli';

/** The methods that a Temporal server has received which accepts a connection and then never responds. */
let calls: string[] = [];
let address = '';
beforeAll(async () => {
  const statusOf = (method: string) => (calls.push(method) === 1 ? UNIMPLEMENTED : null);
  address = await listen(respondWithGrpcStatus(createServer(), statusOf));
});
afterEach(() => {
  calls = [];
  // The CLI keeps its listeners after a signal until the process exits.
  for (const signal of ['SIGINT', 'SIGTERM']) process.removeAllListeners(signal);
});

const CSV = 'project,job,prompt\np,j,m\n';
const START = ['send', '--project', 'p', '--job', 'j', '--prompt', 'm', '--request-id', 'r'];
const REPEAT = 'run the same command again';
const WATCH = 'npm run starter -- watch w';
const CHANGE = 'Stopped. The requested change may still take effect.';

const COMMANDS: readonly [string[], string][] = [
  [
    START,
    `The follow-up may have been started. To start it or to attach to it, ${REPEAT} with --request-id r.`,
  ],
  [['status', 'w'], 'Stopped.'],
  [['watch', 'w'], 'Stopped.'],
  [['list'], 'Stopped.'],
  [['retry', 'w'], `The follow-up may have been started again.\n  to watch:   ${WATCH}\n`],
  [['retry', '--outcome', 'rejected'], `${REPEAT}; no message is sent twice.`],
  [['poll-now', 'w'], CHANGE],
  [['extend', 'w', '1h'], CHANGE],
  [['resolve', 'w', 'delivered'], CHANGE],
  [['cancel', 'w'], CHANGE],
  [['setup'], CHANGE],
  [['batch', 'run', '-'], `The batch was being submitted. To start the batch or to attach to it, ${REPEAT}.`],
  [
    ['batch', 'retry', 'b'],
    'The retry may have been started. Run the same command again: it attaches to a running retry, and otherwise starts one.',
  ],
  [
    ['batch', 'retry', 'b', '--include-unknown'],
    'so check the batch first.\n  to check:   npm run starter -- batch status b\n',
  ],
  [['batch', 'watch', 'b'], 'The batch continues.\n  to watch:   npm run starter -- batch watch b\n'],
  [['batch', 'status', 'b'], 'Stopped.'],
  [['batch', 'results', 'b'], 'Stopped.'],
  [['batch', 'pause', 'b'], CHANGE],
  [['batch', 'resume', 'b'], CHANGE],
  [['batch', 'concurrency', 'b', '5'], CHANGE],
  [['batch', 'cancel', 'b'], CHANGE],
  [['batch', 'cancel', 'b', '--cancel-running'], CHANGE],
  [['schedule', 'create', 's', '-', '--every', '1h'], CHANGE],
  [['schedule', 'update', 's', '--paused'], CHANGE],
];

it.each(COMMANDS)(
  '%j ends at Ctrl-C although the Temporal server does not respond, and prints what continues: %s',
  async (args, text) => {
    const running = runCliAt(address, args, CSV);
    await eventually('the server has received the call', () => calls.length > 1, { intervalMs: 5 });
    process.emit('SIGINT', 'SIGINT');
    const { code, stdout, stderr } = await running;
    expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
    expect(stderr).toContain(text);
    expect(stderr).not.toContain('error:');
  },
);

it.each(COMMANDS)('the help of %j has the option --timeout', async (args) => {
  const words = args.slice(0, ['batch', 'schedule'].includes(args[0] ?? '') ? 2 : 1);
  const { stdout } = await runCliOffline([...words, '--help']);
  expect(stdout).toMatch(/^ +--timeout <duration> +end the command after this time;/m);
});

it.each([
  [['retry', 'w'], `again.\n  to watch:   ${WATCH}\n  to retry:   npm run starter -- retry w`],
  [START, `with --request-id r.`],
])('%j ends with the exit code 124 and a JSON document after --timeout', async (args, text) => {
  const { code, stdout, stderr } = await runCliAt(address, [...args, '--timeout', '300ms', '--json']);
  expect(code).toBe(124);
  const { type, message } = JSON.parse(stdout) as { type: string; message: string };
  expect(type).toBe('WaitTimeout');
  expect(message).toMatch(/^The timeout of 300ms has passed\. The follow-up may have been started/);
  expect(message).toContain(text);
  expect(stderr).toContain(message);
});

it('setup names the calls that the Temporal server rejects', async () => {
  const rejecting = await grpcServer(UNIMPLEMENTED, 'unknown method');
  const { code, stdout, stderr } = await runCliAt(rejecting, ['setup', '--json']);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ type: 'ServerError' });
  expect(stderr).toContain(
    'the Temporal server rejects the calls ListSearchAttributes (unknown method) and ListWorkflowExecutions (unknown method)',
  );
});
