import { expect, it } from '@jest/globals';
import { NO_TROUBLE } from '../../../src/core/tally';
import type { PostOutcome, SendResult } from '../../../src/core/activities';
import { afterPost, afterSend } from '../../../src/workflows/follow-up/after-send';
import { initialState, NOT_SENT, told } from '../../../src/workflows/follow-up/state';
import { JOB, PLAN } from '../../harness/samples';

const words = { label: '', message: '' };
const OUTCOMES: Readonly<Record<string, PostOutcome>> = {
  accepted: { verdict: 'accepted', job: JOB },
  refused: { verdict: 'not-sent', repeatable: true, answered: false, ...words },
  limited: { verdict: 'not-sent', repeatable: true, answered: true, ...words },
  rejected: { verdict: 'rejected', ...words },
  unknown: { verdict: 'unknown', ...words },
};

it.each([
  ['refused', 'not-sent', null, 0],
  ['limited', 'not-sent', null, 1],
  ['unknown', 'unknown', null, 1],
  ['limited accepted', 'accepted', 'response', 2],
  ['unknown refused', 'unknown', null, 1],
  ['unknown rejected', 'unknown', null, 2],
])('the delivery after the POSTs %s is %s (by %s), with %d that may have arrived', (posts, ...expected) => {
  const outcomes = posts.split(' ').flatMap((post) => OUTCOMES[post] ?? []);
  const { verdict, confirmedBy, sends } = outcomes.reduce(afterPost, NOT_SENT);
  expect([verdict, confirmedBy, sends]).toEqual(expected);
});

const answered = (httpStatus: number) => ({ kind: 'trouble', httpStatus, ...words }) as const;
const posted = (outcome: PostOutcome | undefined): SendResult => ({
  kind: 'posted',
  baseline: JOB,
  sentAt: 1,
  outcome: outcome ?? { verdict: 'unknown', ...words },
});
const RESET: SendResult = { kind: 'reset', baseline: JOB, ...words };

it.each<[string, SendResult, boolean, string, string]>([
  ['a job that is not there', { kind: 'unread', trouble: answered(404) }, false, 'failed', 'not-sent 0'],
  ['a service that is away', { kind: 'unread', trouble: answered(503) }, false, 'again', 'not-sent 0'],
  ['a send that is not wanted', { kind: 'not-permitted', message: '' }, false, 'again', 'not-sent 0'],
  ['an active job', { kind: 'held-back', job: JOB }, false, 'wait for rest', 'not-sent 0'],
  ['a POST that is accepted', posted(OUTCOMES.accepted), false, 'delivered', 'accepted 1'],
  ['one that is rejected', posted(OUTCOMES.rejected), false, 'failed', 'rejected 1'],
  ['one that is limited', posted(OUTCOMES.limited), false, 'again', 'not-sent 1'],
  ['one without an answer', posted(OUTCOMES.unknown), false, 'unknown', 'unknown 1'],
  ['a run that was reset, and may not send', RESET, true, 'unknown', 'unknown 1'],
  [
    'one that was reset, whose history has the answer',
    posted(OUTCOMES.accepted),
    true,
    'delivered',
    'accepted 1',
  ],
  ['one that was reset, and has sent nothing itself', posted(OUTCOMES.refused), true, 'again', 'unknown 1'],
])('what follows %s', (_, result, isReset, kind, delivery) => {
  const before = initialState({ ...PLAN, prompt: 'x' }, 0, isReset);
  const [state, step] = afterSend(before, result, { askedAt: 10, endedAt: 20 }, NO_TROUBLE);
  const { verdict, sends } = told(state);
  expect([step.kind, `${verdict} ${sends}`]).toEqual([kind, delivery]);
  // The worker's clock said 1: the POST was made between the start of the send and now.
  expect(state.sentAt).toBe(
    result.kind === 'posted' && verdict !== 'not-sent' && kind !== 'again' ? 10 : null,
  );
  expect(before).toEqual(initialState({ ...PLAN, prompt: 'x' }, 0, isReset));
});
