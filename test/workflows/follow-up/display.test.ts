import { describe, expect, it } from '@jest/globals';
import { currentDetails } from '../../../src/workflows/follow-up/display';
import { JOB, PLAN } from '../../harness/samples';
import { type FollowUpState, initialState, newWatch } from '../../../src/workflows/follow-up/state';

function details(changes: Partial<FollowUpState>, ids: Partial<FollowUpState['plan']> = {}): string {
  return currentDetails({ ...initialState({ ...PLAN, ...ids, prompt: 'Hello' }, 0, false), ...changes });
}

const job = { ...JOB, status: 'completed' };

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
      '| doing: | the job shows as ended; reads it until that is certain (confirm) |',
      '| what to do: | nothing, unless the last answer is an error that stays: then mend its cause. Cancelling ends the watch, not the agent |',
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
        lastAnswer: 'http 500: `x` | <b>*y*</b>\n| z | https://evil.test',
        watch: { ...newWatch(null, 0, 0), observed: { '`|`': 1 } },
        job: { ...job, prLink: 'https://example.test/a|b>`<script>' },
      },
      { jobId: '`| evil\n' },
    );
    const [title = '', , , , ...rows] = text.split('\n');
    expect(title).toBe('**Follow-up `r`** to job ` evil ` of project `docs`');
    for (const row of rows) expect(row.match(/\|/g)).toHaveLength(3);
    expect(text).toContain(
      String.raw`| last answer: | http 500: \`x\` \<b\>\*y\*\</b\> z https\://evil.test |`,
    );
    expect(text).toContain('<https://example.test/a%7Cb%3E%60%3Cscript%3E>');
  });
});
