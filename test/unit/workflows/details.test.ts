import { describe, expect, it } from '@jest/globals';
import { currentDetails } from '../../../src/workflows/follow-up/display';
import { type FollowUpState, initialState, newWatch } from '../../../src/workflows/follow-up/state';

const plan = {
  projectId: 'docs',
  jobId: 'job-1',
  requestId: 'r',
  whenActive: 'send',
  onUnknownDelivery: 'fail',
  deadlineMs: 86_400_000,
  polling: { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0.1, timerPolls: 6 },
  reconcileMs: 0,
  settleMs: 0,
  confirmMs: 0,
} as const;

function details(changes: Partial<FollowUpState>, ids: Partial<FollowUpState['plan']> = {}): string {
  return currentDetails({ ...initialState({ ...plan, ...ids }, 0), ...changes });
}

const job = {
  id: 'job-1',
  status: 'completed',
  source: { repository: null, ref: null },
  model: null,
  prLink: null,
  createdAt: null,
  archivedAt: null,
};

describe('the current details', () => {
  it('are a table of what an operator asks first', () => {
    const text = details({
      phase: 'confirming',
      lastAnswer: 'completed',
      delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
      evidence: null,
      watch: { ...newWatch(job, 0, 0), polls: 3, observed: { active: 2, completed: 1 } },
      nextPollAt: 65_000,
      job: { ...job, prLink: 'https://example.test/pull/1' },
    });
    expect(text.split('\n')).toEqual([
      '**Follow-up `r`** to job `job-1` of project `docs`',
      '',
      '| | |',
      '|---|---|',
      '| phase: | confirming |',
      '| last answer: | `completed` |',
      '| delivery: | accepted (by response) |',
      '| evidence: | none yet |',
      '| polls: | 3 |',
      '| observed: | `active` × 2, `completed` × 1 |',
      '| next read: | 1970-01-01T00:01:05Z |',
      '| deadline: | 1970-01-02T00:00:00Z |',
      '| pull request: | <https://example.test/pull/1> |',
    ]);
  });

  it('let no text from outside become markup or break the table', () => {
    const text = details(
      {
        lastAnswer: 'http 500: `x` | <b>y</b>\n| z |',
        watch: { ...newWatch(null, 0, 0), observed: { '`|`': 1 } },
        job: { ...job, prLink: 'https://example.test/a|b>`<script>' },
      },
      { jobId: '`| evil\n' },
    );
    const [title = '', , , , ...rows] = text.split('\n');
    expect(title).toBe('**Follow-up `r`** to job ` evil ` of project `docs`');
    for (const row of rows) expect(row.match(/\|/g)).toHaveLength(3);
    expect(text).toContain('| last answer: | `http 500: x <b>y</b> z ` |');
    expect(text).toContain('<https://example.test/a%7Cb%3E%60%3Cscript%3E>');
  });
});
