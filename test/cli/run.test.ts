import { describe, expect, it } from '@jest/globals';
import { offline } from './command';

const CREATE = ['schedule', 'create', 'nightly', '-'];
const SEND = ['send', '--project', 'p', '--job', 'j'];

describe('usage', () => {
  it('help is the result, teaches by example, and lists exit codes and environment', async () => {
    const { code, stdout, stderr } = await offline(['--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const word of ['Examples:', 'Exit codes:', 'TEMPORAL_*', 'FOLLOW_UP_TASK_QUEUE', 'setup'])
      expect(stdout).toContain(word);
  });

  it.each([
    [[], ['Usage: agent-follow-up']],
    [
      [...SEND, '--promt', 'x'],
      ["unknown option '--promt'", 'Did you mean --prompt?'],
    ],
    [['status'], ['workflow-id', '(agent-follow-up status --help explains)']],
    // --json is the value of another flag.
    [[...SEND, '--prompt', 'x', '--deadline', '--json'], ['--deadline:']],
  ])('what is wrong with %j is told on stderr, with what is right', async (args, words) => {
    const { code, stdout, stderr } = await offline(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    for (const each of words) expect(stderr).toContain(each);
  });
});

describe('invalid input', () => {
  it('is told in full before anything is connected, and as one JSON document', async () => {
    const flags = ['--project', '..', '--prompt', '', '--deadline', '10', '--polling-growth', 'much'];
    const { code, stdout, stderr } = await offline(['send', ...flags, '--json']);
    expect(code).toBe(2);
    const problems = [
      expect.stringMatching(/^--project: must not be "\.\."/),
      '--job is missing',
      expect.stringMatching(/^--prompt or --prompt-file: /),
      expect.stringMatching(/^--deadline: "10" needs a unit/),
      expect.stringMatching(/^--polling-growth: must be a number from 0 to 10; it is "much"/),
    ];
    const document = JSON.parse(stdout) as { type: string; details: { problems: string[] } };
    expect(document).toMatchObject({ type: 'InvalidRequest', details: { problems } });
    for (const problem of document.details.problems) expect(stderr).toContain(problem);
  });

  it.each([
    [
      ['extend', 'w', '30'],
      "'30' is invalid for argument 'duration'. It must be a number with a unit, such as",
    ],
    [['list', '--limit', '0'], "argument '0' is invalid. It must be a whole number from 1 to 10000."],
    ...['{"hours":"3"}', '{"hour":3}', '{"hour":"3 4"}', 'hour=3'].map((calendar): [string[], string] => [
      [...CREATE, '--calendar', calendar],
      'It must be JSON such as {"dayOfWeek":"Fri","hour":"3"}, with texts without spaces for second, minute',
    ]),
    [[...CREATE, '--every', '5'], "argument '5' is invalid. It must be a number with a unit, such as"],
    [[...CREATE, '--cron', '0 3 * * *', '--offset', '5m'], '--offset: belongs to an interval; give --every'],
    [CREATE, 'timing is missing; give --cron, --calendar or --every'],
    [[...CREATE, '--overlap', 'x'], 'Allowed choices are skip, '],
  ])('%j is refused with the field named', async (args, message) => {
    expect(await offline(args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
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
