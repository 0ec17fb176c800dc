import { describe, expect, it } from '@jest/globals';
import { limitsTable } from '../../../src/cli/commands/namespace';
import type { QueueLimits } from '../../../src/client';
import { offline } from '../command';

const limits = (...args: string[]) => offline(['limits', ...args]);

describe('the command line of limits', () => {
  it('names every mistake by its flag, before anything is connected, also as one JSON document', async () => {
    const { code, stdout, stderr } = await limits(
      ...['set', '--sends-per-project', '90', '--reads-total', '0/s', '--project-weight', 'docs=0', '--json'],
    );
    const problems = [
      '--sends-per-project: "90" needs a unit (s, m, h, d), for example "5/s", "30/m", "90/h"',
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
    [
      ['set', '--project-weight', 'docs'],
      "argument 'docs' is invalid. It must be PROJECT=NUMBER, such as docs=3",
    ],
    [['set', '--project-weight', '=3'], "argument '=3' is invalid. It must be PROJECT=NUMBER"],
    [
      ['set', '--project-weight', 'a=1', '--project-weight', 'a=2'],
      '"a" is given twice; give it one weight.',
    ],
    [['set', '--project-weight', 'a=b=none'], '--project-weight a=b: must be a number'],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await limits(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

it('the table of limits shows what others have put into the server as one line that a terminal only shows', () => {
  const none: QueueLimits = {
    ...{ taskQueue: 'agent-api', total: null, perProject: null, weights: {}, waiting: 0 },
  };
  const weights = { 'me\u001b[2J\nyou': 2 };
  expect(limitsTable({ sends: { ...none, weights }, reads: none })).toMatch(/none +0 +me you=2$/m);
});
