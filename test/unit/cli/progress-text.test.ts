import { describe, expect, it } from '@jest/globals';
import { progressKey, progressText, serverText } from '../../../src/cli/render/progress';
import type { FollowUpDescription } from '../../../src/client';
import type { FollowUpProgress } from '../../../src/core/result';

const NOW = Date.parse('2030-01-01T00:00:00.000Z');

const WATCHING: FollowUpProgress = {
  phase: 'watching',
  job: {
    id: 'job-1',
    status: 'active',
    source: { repository: null, ref: null },
    model: null,
    prLink: null,
    createdAt: null,
    archivedAt: null,
  },
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
    expect(progressText(WATCHING, NOW)).toBe(
      'watching · active · poll 3 · next in 12s · message accepted · deadline in 2h',
    );
  });

  it('says at once that the service cannot be reached, and that nothing was sent', () => {
    expect(progressText(UNSENT, NOW)).toBe(
      'baseline · ECONNREFUSED 127.0.0.1:4010; nothing sent yet · next try in 12s · deadline in 2h',
    );
  });

  it('shows trouble of a poll beside the last known status', () => {
    expect(progressText({ ...WATCHING, lastAnswer: 'http 503: try later' }, NOW)).toContain(
      'http 503: try later (job was active)',
    );
  });

  it('does not say that nothing was sent after an answered 429', () => {
    const answered = { verdict: 'not-sent', confirmedBy: null, sends: 1 } as const;
    expect(progressText({ ...UNSENT, delivery: answered, lastAnswer: 'http 429' }, NOW)).not.toContain(
      'nothing sent',
    );
  });

  it('says who told of a delivery that no answer proved', () => {
    const assumed = { verdict: 'accepted', confirmedBy: 'assumed', sends: 1 } as const;
    expect(progressText({ ...WATCHING, delivery: assumed }, NOW)).toContain('message accepted (by assumed)');
  });

  it('names evidence as soon as there is some', () => {
    expect(progressText({ ...WATCHING, evidence: 'seen-active' }, NOW)).toContain('· seen-active ·');
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

describe('without an answer of a worker', () => {
  const description: FollowUpDescription = {
    workflowId: 'w',
    runId: 'r',
    state: 'running',
    startedAt: '2030-01-01T00:00:00.000Z',
    endedAt: null,
    taskQueue: 'follow-up',
    phase: 'baseline',
    jobStatus: null,
    projectId: 'p',
    jobId: 'j',
    receipt: null,
  };

  it('the line says that no worker polls, and that nothing is lost', () => {
    expect(serverText({ from: 'server', description, workers: 0 })).toBe(
      'no worker answers on task queue follow-up (yet); the follow-up waits, nothing is lost · baseline',
    );
  });

  it('the line does not claim so when one polls', () => {
    expect(serverText({ from: 'server', description, workers: 1 })).toMatch(
      /^the worker .* does not answer \(yet\)/,
    );
  });
});
