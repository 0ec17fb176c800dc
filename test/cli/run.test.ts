import { expect, it } from '@jest/globals';
import { runCliOffline } from './commands/run-cli';

const CREATE = ['schedule', 'create', 'nightly', '-'];
const HOURLY = [...CREATE, '--every', '1h'];
const SEND = ['send', '--project', 'p', '--job', 'j'];
const UPDATE = ['schedule', 'update', 'nightly'];
const CSV = 'project,job,prompt\np,j,m\n';

it('prints help with examples, exit codes and environment variables on stdout', async () => {
  const { code, stdout, stderr } = await runCliOffline(['--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const word of ['Examples:', 'Exit codes:', 'TEMPORAL_*', 'FOLLOW_UP_TASK_QUEUE', 'setup'])
    expect(stdout).toContain(word);
});

it('reports all problems in one JSON document before it connects', async () => {
  const flags = ['--prompt', '', '--deadline', '10', '--polling-growth', 'much', '--json'];
  const { code, stdout, stderr } = await runCliOffline(['send', '--project', '..', ...flags]);
  expect(code).toBe(2);
  const { type, details } = JSON.parse(stdout) as { type: string; details: { problems: string[] } };
  expect(type).toBe('InvalidRequest');
  expect(details.problems.toSorted()).toEqual([
    expect.stringMatching(/^--deadline: "10" needs a unit/),
    '--job is missing',
    '--polling-growth: must be a number from 0 to 10; it is "much"',
    expect.stringMatching(/^--project: must not have the path segment "\.\."/),
    expect.stringMatching(/^--prompt or --prompt-file: /),
  ]);
  for (const problem of details.problems) expect(stderr).toContain(problem);
});

it.each([
  [['batch', 'run'], '50, or the value of the last run', 'unlimited, or the value of the last run'],
  [['batch', 'retry'], 'the value of the last run', 'the value of the last run'],
  [['schedule', 'create'], '50', 'unlimited'],
  [['schedule', 'update'], 'unchanged', 'unchanged'],
])(
  'the help of %j states the effect of an omitted --concurrency and --max-failures',
  async (words, concurrency, maxFailures) => {
    const { stdout } = await runCliOffline([...words, '--help']);
    const defaults = stdout
      .replace(/\s+/g, ' ')
      .match(/(?<=(?:1 to 1000|the batch fails) \(default: )[^)]+/g);
    expect(defaults).toEqual([concurrency, maxFailures]);
  },
);

it.each<[string[], string, string?]>([
  [[], 'Usage: agent-follow-up'],
  [[...SEND, '--promt', 'x'], "unknown option '--promt'\n(Did you mean --prompt?)"],
  [['status'], '(for usage, run npm run starter -- status --help)'],
  // Here, --json is the value of the flag before it.
  [[...SEND, '--prompt', 'x', '--deadline', '--json'], '--deadline:'],
  [['extend', 'w', '30'], `'30' is invalid for argument 'duration'. "30" needs a unit (ms, s, m, h, d), `],
  [['list', '--limit', '0'], "argument '0' is invalid. The value must be a whole number from 1 to 10000."],
  [['list', '--ended-after', '2026-11-21T03:00:00'], 'A time needs a time zone, such as Z or +02:00.'],
  [['status', 'w', '--timeout', '0s'], 'The value must be greater than 0 and at most 24d.'],
  [['status', 'w', '--timeout', '25d'], 'The value must be greater than 0 and at most 24d.'],
  [['retry'], 'WORKFLOW-ID is missing; add the ID, or options such as --outcome and --ended-after'],
  [['retry', '--dry-run', '--limit', '5'], 'WORKFLOW-ID is missing'],
  [
    ['retry', 'w', '--dry-run'],
    'error: --dry-run: is not allowed with a workflow ID; remove this option or the ID',
  ],
  [['retry', 'w', '--outcome', 'rejected', '--limit', '5'], '--limit: is not allowed with a workflow ID'],
  [
    ['retry', 'w', '--run-id', 'r', '--no-wait', '--started-after', '2h'],
    'error: --started-after: is not allowed with',
  ],
  [['retry', '--outcome', "a'b"], 'error: --outcome: must be an outcome, a verdict or an evidence'],
  [['batch', 'run', '-', '--max-failures', '5 %'], '--max-failures: must be'],
  [['batch', 'run', '-'], 'line 4 repeats line 2: prompt: both', `${CSV}p,k,m\np,j,m\n`],
  [HOURLY, 'line 3 repeats line 2: prompt: both', `${CSV}p,j,m\n`],
  [[...UPDATE, '--allow-duplicates'], 'FILE is missing, but --allow-duplicates is set; add the file'],
  [[...UPDATE, '--timeout', '1m'], 'no change is given'],
  ...['{"hours":"3"}', '{"hour":"3 4"}', '{"toString":"3"}', 'hour=3'].map((calendar): [string[], string] => [
    [...CREATE, '--calendar', calendar],
    'The value must be JSON such as {"dayOfWeek":"Fri","hour":"3"}. The fields are second, minute',
  ]),
  [[...CREATE, '--cron', '0 3 * * *', '--offset', '5m'], '--offset: needs an interval; add --every'],
  [CREATE, 'timing is missing; add --cron, --calendar or --every'],
  [['schedule', 'create', 'a/b', '-', '--every', '1h'], 'error: ID: must not have a slash'],
  [
    HOURLY,
    'line 3: request_id: is not allowed in a schedule, because only the first firing would send',
    'project,job,prompt,request_id\np,j,x,\np,j,x,r-1\n',
  ],
  [
    HOURLY,
    'bytes as JSON exceed the maximum of 1048576 bytes; run "batch run" with cron instead of a schedule',
    `project,job,prompt\n${Array.from({ length: 6 }, (_, job) => `p,${job},${'x'.repeat(200_000)}\n`).join('')}`,
  ],
  [UPDATE, 'no change is given; add an option of the schedule or a file of items'],
  [[...UPDATE, '--timezone', 'UTC'], 'timing is missing'],
  [[...UPDATE, '--prompt', 'Fix the links.'], 'FILE is missing'],
  [[...UPDATE, '--overlap', 'x'], 'Allowed choices are skip, '],
])('%j is rejected with the required fix', async (args, message, stdin = CSV) => {
  const stderr = expect.stringContaining(message);
  expect(await runCliOffline(args, stdin)).toEqual({ code: 2, stdout: '', stderr });
});

it('an unreachable Temporal server is reported in one message with the address, the reason and the variable to check', async () => {
  const { code, stdout, stderr } = await runCliOffline([...SEND, '--prompt', 'x', '--json']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^error: Can't reach the Temporal server at 127\.0\.0\.1:1: .* connect ECONNREFUSED.*TEMPORAL_ADDRESS/m,
  );
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(JSON.parse(stdout)).toMatchObject({ type: 'Unreachable' });
});
