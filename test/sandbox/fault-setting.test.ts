import { describe, expect, it } from '@jest/globals';
import { checkFault, parseFault } from '../../sandbox/fault-setting';
import { FAULT_NAMES, faultRow, faultsAsMarkdown, listFaults } from '../../sandbox/faults';

describe('a fault on the command line', () => {
  it.each([
    ['hang', { name: 'hang', parameters: {} }],
    ['slow=500ms', { name: 'slow', parameters: { delay: '500ms' } }],
    ['status=418', { name: 'status', parameters: { code: '418' } }],
    ['hold=never:times=1', { name: 'hold', times: 1, parameters: { processed: 'never' } }],
    [
      'http-503:times=2:skip=1:chance=0.5:operation=get:retryAfter=9@docs/job-1',
      {
        name: 'http-503',
        times: 2,
        skip: 1,
        chance: 0.5,
        operation: 'get',
        parameters: { retryAfter: '9' },
        projectId: 'docs',
        jobId: 'job-1',
      },
    ],
    ['hang@p%2F1/a%40b', { name: 'hang', parameters: {}, projectId: 'p/1', jobId: 'a@b' }],
    ['hang@docs/*', { name: 'hang', parameters: {}, projectId: 'docs', jobId: '*' }],
  ])('%s', (text, setting) => {
    expect(parseFault(text)).toEqual(setting);
  });

  it.each([
    ['htp-503', 'there is no fault "htp-503"; did you mean http-503?; --list-faults shows them all'],
    ['xyzzy', 'there is no fault "xyzzy"; --list-faults shows them all'],
    ['toString', 'there is no fault "toString"; --list-faults shows them all'],
    ['', 'there is no fault ""; --list-faults shows them all'],
    [
      'slow:dealy=1s',
      'fault slow has no "dealy"; did you mean delay?; it takes delay, processed, times, skip, chance, operation',
    ],
    ['slow=5', 'fault slow: delay "5" needs a unit'],
    ['slow:1s', 'fault slow: "1s" must be key=value'],
    ['hang=5', 'fault hang takes no value: it has no parameter of its own'],
    ['hold=sometimes', 'fault hold: processed must be one of before, after, never; it is "sometimes"'],
    ['status=99', 'fault status: code must be a whole number from 200 to 599; it is "99"'],
    ['http-429=a\nb', 'fault http-429: retryAfter must be 1 to 200 printable ASCII characters'],
    ['http-429=später', 'fault http-429: retryAfter must be 1 to 200 printable ASCII characters'],
    ['unknown-status=', 'fault unknown-status: word must be a text of 1 to 200 characters'],
    ['hang:times=0', 'fault hang: times must be a whole number from 1'],
    ['hang:times=', 'fault hang: times must be a whole number from 1'],
    ['hang:times=x', 'fault hang: times must be a whole number from 1'],
    ['hang:skip=-1', 'fault hang: skip must be a whole number from 0'],
    ['hang:chance=2', 'fault hang: chance must be a number from 0 to 1'],
    ['read-only:operation=get', 'fault read-only: operation must be message'],
    ['hang:operation=both', 'fault hang: operation must be get or message'],
    ['hang@job-1', '"@job-1" must be @project/job'],
    ['hang@a/b/c', '"@a/b/c" must be @project/job'],
    ['hang@a/%ff', '"@a/%ff" must be @project/job'],
  ])('%j is refused with a reason', (text, reason) => {
    expect(() => parseFault(text)).toThrow(reason);
  });
});

describe('the table of faults', () => {
  it('has defaults that each fault accepts', () => {
    for (const name of FAULT_NAMES) expect(checkFault({ name }).name).toBe(name);
  });

  it('is listed whole, as text and as Markdown, with a line of explanation each', () => {
    for (const name of FAULT_NAMES) {
      const { meaning } = faultRow(name);
      const line = listFaults()
        .split('\n')
        .find((text) => text.startsWith(`  ${name} `));
      expect(line).toContain(meaning);
      expect(faultsAsMarkdown()).toContain(`| \`${name}\` | ${meaning}`);
    }
  });

  it('has the names that rehearsals and tests rely on', () => {
    expect(FAULT_NAMES).toEqual(
      expect.arrayContaining([
        ...['http-500', 'http-503', 'http-429', 'status', 'html', 'redirect', 'unauthorized', 'read-only'],
        ...['close-before-read', 'close-after-read', 'processed-then-close', 'processed-then-reset', 'reset'],
        ...[
          'processed-then-500',
          'processed-then-503',
          'processed-then-timeout',
          'hang',
          'hold',
          'drip',
          'huge',
        ],
        ...[
          'not-json',
          'another-job',
          'stale',
          'flap-archived',
          'late-link',
          'vanishing-link',
          'changing-link',
        ],
        ...['unknown-status', 'not-found', 'invisible-turn', 'slow', 'expire-key'],
      ]),
    );
  });
});
