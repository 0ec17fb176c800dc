import { describe, expect, it } from '@jest/globals';
import { offline } from './command';

const CREATE = ['schedule', 'create', 'nightly', '-'];
const LIMITS = ['limits', 'set'];
const SEND = ['send', '--project', 'p', '--job', 'j'];

it('help is the result, teaches by example, and lists exit codes and environment', async () => {
  const { code, stdout, stderr } = await offline(['--help']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const word of ['Examples:', 'Exit codes:', 'TEMPORAL_*', 'FOLLOW_UP_TASK_QUEUE', 'setup'])
    expect(stdout).toContain(word);
});

describe('before anything is connected', () => {
  it.each([
    [
      ['send', '--project', '..', '--prompt', '', '--deadline', '10', '--polling-growth', 'much'],
      [
        /^--project: must not be "\.\."/,
        /^--job is missing$/,
        /^--prompt or --prompt-file: /,
        /^--deadline: "10" needs a unit/,
        /^--polling-growth: must be a number from 0 to 10; it is "much"/,
      ],
    ],
    [['batch', 'run', '-'], [/^line 2: is not JSON/]],
    [
      [...LIMITS, '--sends-per-project', '90', '--reads-total', '0/s', '--project-weight', 'docs=0'],
      [
        /^--sends-per-project: "90" needs a unit \(s, m, h, d\), for example "5\/s", "30\/m", "90\/h"$/,
        /^--reads-total: "0\/s" is too low/,
        /^--project-weight docs: must be a number from 0.001 to 1000, or off; it is 0$/,
      ],
    ],
  ])('every problem of %j is told, and as one JSON document', async (args, problems) => {
    const { code, stdout, stderr } = await offline(
      [...args, '--json'],
      '{"project":"p","job":"j","prompt":"m"}\n{',
    );
    expect(code).toBe(2);
    const document = JSON.parse(stdout) as { type: string; details: { problems: string[] } };
    expect(document.type).toBe('InvalidRequest');
    const wanted: unknown[] = problems.map((problem) => expect.stringMatching(problem));
    expect(document.details.problems).toEqual(expect.arrayContaining(wanted));
    for (const problem of document.details.problems) expect(stderr).toContain(problem);
  });

  it.each([
    [[], 'Usage: agent-follow-up'],
    [[...SEND, '--promt', 'x'], "unknown option '--promt'\n(Did you mean --prompt?)"],
    [['status'], '(agent-follow-up status --help explains)'],
    // --json is the value of another flag.
    [[...SEND, '--prompt', 'x', '--deadline', '--json'], '--deadline:'],
    [
      ['extend', 'w', '30'],
      "'30' is invalid for argument 'duration'. It must be a number with a unit, such as",
    ],
    [['list', '--limit', '0'], "argument '0' is invalid. It must be a whole number from 1 to 10000."],
    ...['{"hours":"3"}', '{"hour":3}', '{"hour":"3 4"}', '{"toString":"3"}', 'hour=3'].map(
      (calendar): [string[], string] => [
        [...CREATE, '--calendar', calendar],
        'It must be JSON such as {"dayOfWeek":"Fri","hour":"3"}, with texts without spaces for second, minute',
      ],
    ),
    [[...CREATE, '--cron', '0 3 * * *', '--offset', '5m'], '--offset: belongs to an interval; give --every'],
    [CREATE, 'timing is missing; give --cron, --calendar or --every'],
    [['schedule', 'update', 'nightly'], 'no change given; give a flag of the schedule, or a file of items'],
    [['schedule', 'trigger', 'nightly', '--overlap', 'x'], 'Allowed choices are skip, '],
    [LIMITS, 'no change given'],
    [
      [...LIMITS, '--project-weight', '=3'],
      "argument '=3' is invalid. It must be PROJECT=NUMBER, such as docs=3",
    ],
    [[...LIMITS, '--project-weight', 'a=1', '--project-weight', 'a=2'], '"a" is given twice; give it'],
    [[...LIMITS, '--project-weight', 'a=b=none'], '--project-weight a=b: must be a number'],
  ])('%j is refused, with what is right', async (args, message) => {
    const stderr = expect.stringContaining(message);
    expect(await offline(args)).toEqual({ code: 2, stdout: '', stderr });
  });
});

it('a Temporal that is not there is one message with the address, the reason and the remedy', async () => {
  const { code, stdout, stderr } = await offline([...SEND, '--prompt', 'x', '--json']);
  expect(code).toBe(1);
  expect(stderr).toContain("Can't reach Temporal at 127.0.0.1:1: connect ECONNREFUSED");
  expect(stderr).toContain('TEMPORAL_ADDRESS');
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(JSON.parse(stdout)).toMatchObject({ type: 'Unreachable' });
});
