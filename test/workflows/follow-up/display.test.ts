import { expect, it } from '@jest/globals';
import { currentDetails } from '../../../src/workflows/follow-up/display';
import { JOB, PLAN } from '../../harness/samples';
import { initialState, newWatch } from '../../../src/workflows/follow-up/state';

// The Web UI shows the table (web-ui.long.test.ts).
it('the current details let no text from outside become markup or break the table', () => {
  const text = currentDetails({
    ...initialState({ ...PLAN, jobId: '`| evil\n', prompt: 'Hello' }, 0, false),
    phase: 'needs-decision',
    delivery: { verdict: 'unknown', confirmedBy: null, sends: 1 },
    doubt: '<b>http 503</b>',
    lastAnswer: 'http 500: `x` | <b>*y*</b>\n| z | https://evil.test',
    watch: { ...newWatch(null, 0, 0), observed: { '`|`': 1 } },
    job: { ...JOB, prLink: 'https://example.test/a|b>`<script>' },
  });
  const [title = '', , , , ...rows] = text.split('\n');
  expect(title).toBe('**Follow-up `r`** to job ` evil ` of project `docs`');
  for (const row of rows) expect(row.match(/\|/g)).toHaveLength(3);
  expect(text).toContain(
    String.raw`| last answer: | http 500: \`x\` \<b\>\*y\*\</b\> z https\://evil.test |`,
  );
  expect(text).toContain(String.raw`message arrived: \<b\>http 503\</b\> |`);
  expect(text).toContain('<https://example.test/a%7Cb%3E%60%3Cscript%3E>');
});
