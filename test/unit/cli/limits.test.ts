import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { limitsTable } from '../../../src/cli/commands/limits';
import { run } from '../../../src/cli/program';
import type { QueueLimits } from '../../../src/client';

async function limits(...args: string[]) {
  let stdout = '';
  let stderr = '';
  const code = await run({
    args: ['limits', ...args],
    // Nothing listens there: whatever is told, is told before a connection is made.
    env: { TEMPORAL_CONFIG_FILE: '/nowhere/temporal.toml', TEMPORAL_ADDRESS: '127.0.0.1:1' },
    stdin: Readable.from([]),
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    scriptPath: '/usr/bin/agent-follow-up',
    version: '1.2.3',
  });
  return { code, stdout, stderr };
}

describe('the command line of limits', () => {
  it.each(['show', 'set', 'clear'])('has help for %s', async (command) => {
    const { code, stdout } = await limits(command, '--help');
    expect(code).toBe(0);
    expect(stdout).toContain(`agent-follow-up limits ${command}`);
  });

  it.each([
    ['a missing subcommand', [], 'Usage: agent-follow-up limits', 'show'],
    ['an unknown subcommand', ['shwo'], "unknown command 'shwo'", 'agent-follow-up limits --help explains'],
    [
      'an unknown flag',
      ['set', '--send-total', '5/s'],
      'Did you mean --sends-total?',
      'limits set --help explains',
    ],
    ['a flag without its value', ['set', '--sends-total'], 'argument missing', 'limits set --help explains'],
    ['an argument too many', ['clear', 'all'], 'too many arguments', 'limits clear --help explains'],
  ])('tells of %s with what is right, and exits with 2', async (_, args, problem, remedy) => {
    const { code, stdout, stderr } = await limits(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(problem);
    expect(stderr).toContain(remedy);
  });

  it('names every mistake by its flag, before anything is connected, also as one JSON document', async () => {
    const { code, stdout, stderr } = await limits(
      ...['set', '--sends-per-project', '90', '--reads-total', '0/s', '--project-weight', 'docs=0', '--json'],
    );
    const problems = [
      '--sends-per-project: "90" needs a unit, e.g. "90/h" (units: s, m, h, d)',
      expect.stringContaining('--reads-total: "0/s" is too low'),
      '--project-weight docs: must be a number from 0.001 to 1000, or off; it is 0',
    ];
    expect(code).toBe(2);
    expect(stderr).toContain('--sends-per-project: "90" needs a unit');
    const document = JSON.parse(stdout) as { type: string; details: { problems: string[] } };
    expect(document.type).toBe('InvalidRequest');
    expect(document.details.problems.sort()).toEqual(expect.arrayContaining(problems));
    expect(document.details.problems).toHaveLength(3);
  });

  it.each([
    [['set'], 'no change given'],
    [['set', '--project-weight', 'docs'], '--project-weight: "docs" is not PROJECT=NUMBER, e.g. docs=3'],
    [['set', '--project-weight', '=3'], '--project-weight: "=3" is not PROJECT=NUMBER'],
    [['set', '--project-weight', 'a=3', '--project-weight', 'a=4'], '--project-weight: "a" is given twice'],
    [['set', '--project-weight', 'a=b=none'], '--project-weight a=b: must be a number'],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await limits(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('the table of limits', () => {
  const none: QueueLimits = {
    ...{ taskQueue: 'agent-api', total: null, perProject: null, weights: {}, waiting: 0, oldestMs: 0 },
  };

  it('tells what holds and what waits', () => {
    const perProject = { perSecond: 0.025, rate: '90/h' } as const;
    const total = { perSecond: 5, rate: '5/s' } as const;
    const sends = { ...none, taskQueue: 'sends', total, perProject, waiting: 12, oldestMs: 90_000 };

    const [, first, second] = limitsTable({ sends, reads: none }).split('\n');

    expect(first?.split(/ {2,}/)).toEqual(['sends', 'sends', '5/s', '90/h', 'none', '12, oldest 1m 30s']);
    expect(second?.split(/ {2,}/)).toEqual(['reads', 'agent-api', 'none', 'none', 'none', '0']);
  });

  it('names some weights and counts the others', () => {
    const weights = Object.fromEntries([1, 2, 3, 4, 5, 6, 7].map((n) => [`p${n}`, n]));

    const table = limitsTable({ sends: { ...none, weights }, reads: none });

    expect(table).toContain('p1=1 p2=2 p3=3 p4=4 p5=5 and 2 more');
  });

  it('shows what others have put into the server as one line that a terminal only shows', () => {
    const weights = { 'me\u001b[2J\nyou': 2 };

    expect(limitsTable({ sends: { ...none, weights }, reads: none })).toMatch(/none +me you=2 +0/);
  });
});
