import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { progressKey, progressRows, progressText } from '../../../src/cli/render/follow-up';
import { Session } from '../../../src/cli/session';
import { JOB } from '../../harness/samples';
import type { FollowUpProgress } from '../../../src/core/result';

const NOW = Date.parse('2030-01-01T00:00:00.000Z');

const WATCHING: FollowUpProgress = {
  phase: 'watching',
  job: JOB,
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  evidence: null,
  observed: { active: 3 },
  polls: 3,
  nextPollAt: '2030-01-01T00:00:11.500Z',
  deadlineAt: '2030-01-01T02:00:00.000Z',
  lastAnswer: 'active',
};

const UNSENT: FollowUpProgress = {
  ...WATCHING,
  phase: 'baseline',
  job: null,
  delivery: { verdict: 'not-sent', confirmedBy: null, sends: 0 },
  polls: 0,
  lastAnswer: 'ECONNREFUSED 127.0.0.1:4010',
};

describe('the progress line', () => {
  it('says phase, status, polls, what comes next and the deadline', () => {
    expect(progressText(WATCHING, NOW, '')).toBe(
      'watching · active · poll 3 · next in 12s · message accepted · deadline in 2h',
    );
  });

  it('says at once that the service cannot be reached, and that nothing was sent', () => {
    expect(progressText(UNSENT, NOW, '')).toBe(
      'baseline · ECONNREFUSED 127.0.0.1:4010; nothing sent yet · next try in 12s · deadline in 2h',
    );
  });

  it('shows trouble of a poll beside the last known status', () => {
    expect(progressText({ ...WATCHING, lastAnswer: 'http 503: try later' }, NOW, '')).toContain(
      'http 503: try later (job was active)',
    );
  });

  it('does not say that nothing was sent after an answered 429', () => {
    const answered = { verdict: 'not-sent', confirmedBy: null, sends: 1 } as const;
    expect(progressText({ ...UNSENT, delivery: answered, lastAnswer: 'http 429' }, NOW, '')).not.toContain(
      'nothing sent',
    );
  });
});

describe('the rows of status', () => {
  const nowhere = { write: () => undefined };
  const session = new Session({}, Readable.from([]), nowhere, nowhere, 'starter');
  const rows = (change: Partial<FollowUpProgress>) =>
    Object.fromEntries(progressRows(session, 'w', { ...WATCHING, ...change }));

  it('never say that no read is planned while an activity reads', () => {
    expect(rows({ nextPollAt: null })).toMatchObject({ 'next read': 'within 30s, by a running activity' });
    expect(rows({ nextPollAt: null, phase: 'sending' })).toMatchObject({ 'next read': 'none planned' });
  });

  it('say in needs-decision why, and which command decides', () => {
    expect(rows({ phase: 'needs-decision', doubt: 'ECONNRESET: read' })).toMatchObject({
      why: 'nobody can tell whether the message arrived: ECONNRESET: read',
      'what to do':
        'look at the job; then starter resolve w delivered (or not-delivered): ' +
        'delivered waits for the end of the job, not-delivered sends the message once more',
    });
  });

  it('show a phase and a verdict of a newer worker', () => {
    expect(rows({ phase: 'verifying' as never })).toMatchObject({
      phase: 'verifying',
      doing: expect.stringContaining('newer'),
    });
    const delivery = { ...WATCHING.delivery, verdict: 'revoked' as never };
    expect(rows({ phase: 'failed', delivery })['what to do']).toContain('look at the job');
  });

  it('say in unauthorized that the workers need another key', () => {
    expect(rows({ phase: 'unauthorized' })['what to do']).toContain('AGENT_API_KEY');
  });
});

describe('a new plain line', () => {
  it('is not worth the passing of time or one more poll with the same answer', () => {
    const later = { ...WATCHING, polls: 4, nextPollAt: '2030-01-01T00:01:00.000Z', observed: { active: 4 } };
    expect(progressKey(later)).toBe(progressKey(WATCHING));
  });

  it.each([
    ['phase', { phase: 'confirming' }],
    ['answer', { lastAnswer: 'http 503' }],
    ['evidence', { evidence: 'confirmed' }],
    ['delivery', { delivery: { verdict: 'unknown', confirmedBy: null, sends: 1 } }],
    ['deadline', { deadlineAt: '2030-01-02T00:00:00.000Z' }],
  ] as [string, Partial<FollowUpProgress>][])('is worth a change of the %s', (_, change) => {
    expect(progressKey({ ...WATCHING, ...change })).not.toBe(progressKey(WATCHING));
  });
});
