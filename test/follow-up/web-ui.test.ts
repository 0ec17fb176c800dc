import { expect, it } from '@jest/globals';
import { nextStep } from '../../src/follow-up/next-step';
import type { FollowUpState } from '../../src/follow-up/state';
import { activitySummary, currentDetails, waitSummary } from '../../src/follow-up/web-ui';
import {
  accepted,
  afterReads,
  afterSend,
  RATE_LIMITED,
  ms,
  needsDecision,
  notRead,
  notReady,
  play,
  posted,
  readEnded,
  REFUSED,
  resendAllowed,
  sendEnded,
  unknown,
  unsent,
} from './states';

/** Returns the values in the table of the current details by the names of the rows. */
function details(state: FollowUpState, second: number): Readonly<Record<string, string>> {
  const text = currentDetails(
    state,
    nextStep(state, ms(second), () => 0.5),
  );
  const [, , , , ...rows] = text.split('\n');
  const cells = rows.map((row) => row.split('|').map((cell) => cell.trim()));
  return Object.fromEntries(cells.map(([, name = '', value = '']) => [name.replace(/:$/, ''), value]));
}

it('the current details show the phase, the delivery, the evidence and the times of a watch', () => {
  expect(details(afterReads(accepted('completed'), '130 active'), 130)).toMatchObject({
    phase: 'watching',
    'last response': '`active`',
    delivery: 'accepted (by response)',
    evidence: 'none yet',
    polls: '1',
    responses: '`active` × 1',
    'next read': '1970-01-01T00:02:15Z',
    deadline: '1970-01-01T01:00:00Z',
    'pull request': 'none',
  });
});

it('the current details of a job with an unknown status state that an operator must check the job, because the agent may wait for a person', () => {
  expect(details(afterReads(accepted('completed'), '130 awaiting_user_feedback'), 130)).toMatchObject({
    phase: 'watching',
    why: expect.stringContaining('this version does not know the status of the job'),
    'what to do': expect.stringContaining('check the job in the agent service'),
    'last response': '`awaiting_user_feedback`',
    responses: '`awaiting_user_feedback` × 1',
  });
});

// The workflow writes the current details when a step starts. An activity then adds no event until the activity ends.
it('the current details refer to the pending activity for later reads, and state that the delivery is not known during a send', () => {
  const polling = details(afterReads(accepted('completed'), '130 active, 135 active'), 135);
  expect(polling.polls).toBe('2; later reads are in the pending activity');
  expect(polling.responses).toMatch(/; later reads are in the pending activity$/);
  expect(details(unsent(), 0)).toMatchObject({
    'last response': 'none yet',
    delivery: 'not-sent until the send starts, then not known until it has ended',
  });
  const done = afterReads(accepted('completed'), '110 active, 130 failed');
  expect(details(done, 130)['next read']).toBe('-');
  expect(waitSummary(unsent(), step(unsent(), 0) as Parameters<typeof waitSummary>[1], 0)).toContain(
    ': no response yet, ',
  );
});

it('the current details state the reason and the update for an operator’s decision', () => {
  const rows = details(needsDecision(), 100);
  expect(rows.delivery).toBe('unknown');
  expect(rows['what to do']).toContain('send the update `resolveDelivery`');
  expect(rows.why).toContain('ECONNRESET');
});

// web-ui.long.test.ts checks the table in the Web UI.
it('the current details escape texts of the agent service and of callers, which can neither add markup nor break the table', () => {
  const lost = { verdict: 'unknown', label: 'x', message: '<b>http 503</b>' } as const;
  const asking = unknown('active', { jobId: '`| evil\n', onUnknownDelivery: 'ask' });
  const base = play(asking, sendEnded(posted(lost, 'active')), { kind: 'reconciling ended' });
  const failed = { label: '`|`', message: 'http 500: `x` | <b>*y*</b>\n| z | https://evil.test' };
  const linked = play(base, readEnded(failed, 140));
  const state = {
    ...linked,
    job: linked.job && { ...linked.job, prLink: 'https://example.test/a|b>`<script>' },
  };
  const text = currentDetails(
    state,
    nextStep(state, ms(140), () => 0.5),
  );
  const [title = '', , , , ...rows] = text.split('\n');
  expect(title).toBe('**Follow-up `r`** to job ` evil ` of project `docs`');
  for (const row of rows) expect(row.match(/\|/g)).toHaveLength(3);
  expect(text).toContain(
    String.raw`| last response: | http 500: \`x\` \<b\>\*y\*\</b\> z https\://evil.test |`,
  );
  expect(text).toContain(String.raw`message arrived: \<b\>http 503\</b\>`);
  expect(text).toContain('<https://example.test/a%7Cb%3E%60%3Cscript%3E>');
});

function step(state: FollowUpState, second: number) {
  return nextStep(state, ms(second), () => 0.5);
}

it.each([
  ['nothing was sent', afterSend(notRead(REFUSED)), 100, 'starting: ECONNREFUSED, next try in 5s'],
  ['nothing was processed', afterSend(posted(RATE_LIMITED)), 100, 'sending: http 429, next try in 5s'],
  [
    'a resend waits',
    play(resendAllowed(), sendEnded(notRead(503), 300)),
    300,
    'sending: http 503, next try in 5s',
  ],
  ['the job is active', afterSend(notReady('active')), 100, 'waiting-for-job: active, next read in 5s'],
  ['the delivery is unknown', unknown('completed'), 100, 'reconciling: ECONNRESET, next read in 30s'],
  ['an operator must decide', needsDecision(), 100, 'needs-decision: ECONNRESET, next read in 5s'],
  ['the message was accepted', accepted('completed'), 100, 'watching: active, next read in 5s'],
  [
    'the job was read',
    afterReads(accepted('completed'), '130 active, 131 503'),
    131,
    'watching, poll 2: http 503, next read in 5s',
  ],
])(
  'the summary of a timer has the phase, the latest response and the wait if %s',
  (_, state, second, summary) => {
    expect(waitSummary(state, step(state, second) as Parameters<typeof waitSummary>[1], ms(second))).toBe(
      summary,
    );
  },
);

it.each([
  ['the first send', unsent(), 0, 'read the job, then send the message'],
  ['a further send', resendAllowed(), 300, 'read the job, then send the message (POST 2)'],
  [
    'a read while the job is not idle',
    afterSend(notReady('active')),
    100,
    'read the job, to find out whether it is idle',
  ],
  ['a read', afterReads(accepted('completed'), '130 active'), 130, 'poll 2'],
  [
    'a poll',
    afterReads(accepted('completed'), '130 active, 135 active'),
    135,
    'poll 3 and later polls, while the job is active',
  ],
])('the summary of an activity describes %s', (_, state, second, summary) => {
  expect(activitySummary(state, step(state, second))).toBe(summary);
});
