import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { limitsTable } from '../../src/cli/commands/namespace';
import { batchLine, itemLine } from '../../src/cli/render/batch';
import { progressKey, progressRows, progressText } from '../../src/cli/render/follow-up';
import { printable, table } from '../../src/cli/render/text';
import { Session } from '../../src/cli/session';
import { ProgressLine } from '../../src/cli/wait';
import type { BatchProgress } from '../../src/client';
import type { FollowUpProgress } from '../../src/core/result';
import { ITEM_END, JOB } from '../harness/samples';

const WATCHING: FollowUpProgress = {
  ...{ phase: 'watching', job: JOB, evidence: null, observed: { active: 3 }, polls: 3, lastAnswer: 'active' },
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  nextPollAt: '2030-01-01T00:00:11.500Z',
  deadlineAt: '2030-01-01T02:00:00.000Z',
};
const NOT_SENT = { verdict: 'not-sent', confirmedBy: null, sends: 0 } as const;
const REFUSED = 'ECONNREFUSED 127.0.0.1:4010';
const UNSENT = { phase: 'baseline', job: null, delivery: NOT_SENT, polls: 0, lastAnswer: REFUSED } as const;

describe('the progress line of a follow-up', () => {
  it.each<[Partial<FollowUpProgress>, string]>([
    [{}, 'watching · active · poll 3 · next in 12s · message accepted · deadline in 2h'],
    [UNSENT, `baseline · ${REFUSED}; nothing sent yet · next try in 12s · deadline in 2h`],
    // After an answered 429 something was sent.
    [
      { ...UNSENT, delivery: { ...NOT_SENT, sends: 1 }, lastAnswer: 'http 429' },
      'baseline · http 429 · next try in 12s · deadline in 2h',
    ],
    [
      { lastAnswer: 'http 503' },
      'watching · http 503 (job was active) · poll 3 · next in 12s · message accepted · deadline in 2h',
    ],
  ])('of %j', (change, text) => {
    expect(progressText({ ...WATCHING, ...change }, Date.parse('2030-01-01T00:00:00Z'), '')).toBe(text);
  });

  it('is worth another plain line for any change but one more poll with the same answer', () => {
    const isNews = (change: Partial<FollowUpProgress>) =>
      progressKey({ ...WATCHING, ...change }) !== progressKey(WATCHING);
    expect(isNews({ polls: 4, nextPollAt: '2030-01-01T00:01:00.000Z', observed: { active: 4 } })).toBe(false);
    expect([isNews({ phase: 'confirming' }), isNews({ lastAnswer: 'http 503' })]).toEqual([true, true]);
  });
});

describe('the rows of status', () => {
  const nowhere = { write: () => undefined };
  const session = new Session({}, Readable.from([]), nowhere, nowhere, 'starter');

  it.each<[Partial<FollowUpProgress>, object]>([
    [{}, { 'next read': expect.stringContaining('2030-01-01T00:00:11.500Z (in ') }],
    [
      { phase: 'needs-decision', doubt: 'ECONNRESET: read' },
      {
        why: 'nobody can tell whether the message arrived: ECONNRESET: read',
        'what to do':
          'look at the job; then starter resolve w delivered (or not-delivered): ' +
          'delivered waits for the end of the job, not-delivered sends the message once more',
      },
    ],
    [{ phase: 'verifying' as never }, { phase: 'verifying', doing: expect.stringContaining('newer') }],
    [{ phase: 'unauthorized' }, { 'what to do': expect.stringContaining('AGENT_API_KEY') }],
  ])('of %j', (change, rows) => {
    expect(Object.fromEntries(progressRows(session, 'w', { ...WATCHING, ...change }))).toMatchObject(rows);
  });
});

describe('the progress of a batch', () => {
  const progress: BatchProgress = {
    ...{ batchId: 'nightly', state: 'running', message: null, items: 200, settled: 50, firstFailures: [] },
    ...{ byStatus: { completed: 45, failed: 3 }, byFailure: { JobNotFound: 2 }, byEvidence: {} },
    ...{ unknownDeliveries: 0, startedAt: '2026-07-31T08:00:00.000Z', endedAt: null },
    ...{ open: 10, concurrency: 10 },
  };
  const counts = 'open 10 · completed 45 · failed 3 · JobNotFound 2 ·';

  it('has the share, the counts, and what is unusual', () => {
    expect(batchLine(progress)).toBe(`50 of 200 · 25 % · ${counts} to come 140`);
    expect(batchLine({ ...progress, state: 'paused', unknownDeliveries: 4 })).toBe(
      `paused; "batch resume" continues it · 50 of 200 · 25 % · ${counts} unknown deliveries 4 · to come 140`,
    );
  });

  it('has a line for a failed item, with what went wrong', () => {
    const end = { ...ITEM_END, outcome: 'JobNotFound', delivery: null, message: 'no such job' } as const;
    expect(itemLine(end)).toBe('2026-01-01T00:00:00Z  JobNotFound       -         p/j  no such job');
  });
});

it.each([
  [true, 'xterm', ['\r\u001b[2Kwatching · active …', '\r\u001b[2Kdone', '\r\u001b[2K']],
  [false, 'xterm', ['TIME watching · active · poll 1\n', 'TIME done\n']],
  [true, 'dumb', ['TIME watching · active · poll 1\n', 'TIME done\n']],
])(
  'the line that is written is rewritten on a terminal, within its width, and elsewhere a new one for each change: %j %s',
  (isTTY, TERM, lines) => {
    const written: string[] = [];
    const line = new ProgressLine({ isTTY, columns: 20, write: (text) => written.push(text) }, { TERM });
    line.show('watching \u001b[2J\u001b]0;x\u0007· active · poll 1', 'a');
    line.show('watching · active · poll 2', 'a');
    line.show('done', 'b');
    line.clear();
    expect(written.map((each) => each.replace(/^\d\d:\d\d:\d\dZ/, 'TIME'))).toEqual(lines);
  },
);

describe('text for a terminal', () => {
  it('from the wire cannot steer it', () => {
    expect(printable('a\u001b[31mred\u001b[0m\u001b]0;title\u0007 b')).toBe('ared b');
    expect(printable('one\r\ntwo\u0007\u009b2J\u202egpj.exe')).not.toMatch(/[\p{Cc}\u202e]/u);
    const reads = { taskQueue: 'agent-api', total: null, perProject: null, weights: {}, waiting: 0 };
    const sends = { ...reads, weights: { 'me\u001b[2J\nyou': 2 } };
    expect(limitsTable({ sends, reads })).toMatch(/none +0 +me you=2$/m);
  });

  it('has columns as wide as their widest cell, and each cell on its line', () => {
    const rows = [
      ['one-two', 'one\ntwo'],
      ['three', 'four'],
    ];
    expect(table(['ID', 'NAME'], rows)).toBe('ID       NAME\none-two  one two\nthree    four');
  });
});
