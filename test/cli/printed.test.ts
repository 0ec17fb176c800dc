import { Readable } from 'node:stream';
import { expect, it } from '@jest/globals';
import { commandOutcomeFromError, commandOutcomeFromResult } from '../../src/cli/command-outcome';
import { stateOf } from '../../src/cli/commands/retry';
import { batchLine, itemLine } from '../../src/cli/render/batch';
import { progressKey, progressRows, progressText } from '../../src/cli/render/follow-up';
import { printable, table } from '../../src/cli/render/text';
import { Session } from '../../src/cli/session';
import { ProgressLine } from '../../src/cli/render/progress-line';
import {
  type BatchProgress,
  ConflictError,
  FollowUpError,
  InvalidRequestError,
  type FollowUpErrorCode,
} from '../../src/entries/client';
import { followUpFailureError, notFoundError } from '../../src/client/errors';
import type { FailureType, FollowUpProgress } from '../../src/contract/result';
import { BatchItemsUnavailableError } from '../../src/temporal/batch-items';
import { ITEM_RESULT, JOB, RECEIPT } from '../harness/fixtures';

it('prints a result with evidence, delivery and the complete link, and exits with the code of its status', () => {
  const prLink = 'https://code.example/pull/7';
  const source = { repository: 'docs', ref: 'main' };
  const ends = ['completed', 'archived', 'failed'].map((status) =>
    commandOutcomeFromResult('follow-up:p:j:r', {
      ...JOB,
      status,
      source,
      model: 'm',
      prLink,
      receipt: RECEIPT,
    }),
  );
  expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 10, 11]);
  expect(ends[0]?.text.split('\n')).toEqual([
    'status    completed',
    `prLink    ${prLink}`,
    'job       j',
    'source    docs @ main',
    'model     m',
    'delivery  accepted (confirmed by response), 1 send',
    'evidence  seen-active',
    'polls     7 (active × 6, completed × 1)',
    'workflow  follow-up:p:j:r',
  ]);
});

it('prints a missing link as null without a cause, because the link can be missing for several causes', () => {
  const { text } = commandOutcomeFromResult('follow-up:p:j:r', { ...JOB, prLink: null, receipt: RECEIPT });
  expect(text.split('\n')).toContain('prLink    null');
});

const ended = (type: FailureType) => followUpFailureError(type, 'message', { workflowId: 'w' });

it.each<[FollowUpError, number, string, string?]>([
  [ended('InvalidRequest'), 2, 'InvalidRequest', 'FollowUpError'],
  [ended('FollowUpRejected'), 20, 'FollowUpRejected'],
  [ended('DeliveryUnknown'), 21, 'DeliveryUnknown'],
  [ended('DeadlineExceeded'), 22, 'DeadlineExceeded'],
  [ended('JobNotFound'), 23, 'JobNotFound'],
  [new FollowUpError('CANCELLED', 'message'), 24, 'Cancelled', 'FollowUpError'],
  [new FollowUpError('TERMINATED', 'message'), 1, 'Terminated', 'FollowUpError'],
  [new BatchItemsUnavailableError('nightly'), 1, 'BatchItemsUnavailable', 'BatchItemsUnavailableError'],
  [new ConflictError('CONFLICT', 'message'), 2, 'Conflict'],
  [notFoundError('follow-up', 'follow-up:a:b:c', 'default'), 2, 'NotFound'],
])('the error %s has an exit code, a type and a class', (error, exitCode, type, name = `${type}Error`) => {
  expect(commandOutcomeFromError(error)).toMatchObject({
    exitCode,
    document: { type, message: error.message },
  });
  expect(error.name).toBe(name);
});

it('the error of a follow-up that was cancelled before its send names retry as the way to send the message', () => {
  const receipt = { ...RECEIPT, delivery: NOT_SENT };
  const { text } = commandOutcomeFromError(new FollowUpError('CANCELLED', 'message', { receipt }));
  expect(text).toMatch(
    /^ +what to do +to send the message nevertheless, run `agent-follow-up retry` with the workflow ID$/m,
  );
  const rejected = commandOutcomeFromError(
    followUpFailureError('FollowUpRejected', 'message', { workflowId: 'w', receipt }),
  );
  expect(rejected.text).toMatch(/^ +what to do +fix the cause, then run /m);
});

it('prints at most 100 problems and the number of the remaining problems', () => {
  const problems = Array.from({ length: 150 }, (_, line) => ({ field: `line ${line}`, text: 'is wrong' }));
  const { text } = commandOutcomeFromError(new InvalidRequestError(problems));
  expect(text.split('\n')).toHaveLength(102);
  expect(text).toMatch(/line 99: is wrong\n {2}… and 50 more$/);
});

const WATCHING: FollowUpProgress = {
  ...{
    phase: 'watching',
    job: JOB,
    evidence: null,
    responseCounts: { active: 3 },
    polls: 3,
    lastResponse: 'active',
  },
  delivery: { verdict: 'accepted', confirmedBy: 'response', sends: 1 },
  nextPollAt: '2030-01-01T00:00:11.500Z',
  deadlineAt: '2030-01-01T02:00:00.000Z',
};
const NOT_SENT = { verdict: 'not-sent', confirmedBy: null, sends: 0 } as const;
const REFUSED = 'ECONNREFUSED 127.0.0.1:4010';
const UNSENT = { phase: 'starting', job: null, delivery: NOT_SENT, polls: 0, lastResponse: REFUSED } as const;

it.each<[Partial<FollowUpProgress>, string]>([
  [{}, 'watching · active · poll 3 · next in 12s · message accepted · deadline in 2h'],
  [UNSENT, `starting · ${REFUSED}; nothing sent yet · next try in 12s · deadline in 2h`],
  // A POST that received 429 counts as a send, so the line does not state that nothing was sent.
  [
    { ...UNSENT, delivery: { ...NOT_SENT, sends: 1 }, lastResponse: 'http 429' },
    'starting · http 429 · next try in 12s · deadline in 2h',
  ],
  [
    { lastResponse: 'http 503' },
    'watching · http 503 (job was active) · poll 3 · next in 12s · message accepted · deadline in 2h',
  ],
  [
    { job: { ...JOB, status: 'blocked' }, lastResponse: 'blocked' },
    'watching · blocked (unknown status, check the job) · poll 3 · next in 12s · message accepted · deadline in 2h',
  ],
  [
    {
      phase: 'confirming',
      job: { ...JOB, status: 'completed' },
      lastResponse: 'completed; not accepted before 00:30',
    },
    'confirming · completed; not accepted before 00:30 · poll 3 · next in 12s · message accepted · deadline in 2h',
  ],
])('formats the progress line of a follow-up with the progress %j', (change, text) => {
  expect(progressText({ ...WATCHING, ...change }, Date.parse('2030-01-01T00:00:00Z'), '')).toBe(text);
});

it('prints a new progress line for every change except another poll with the same response', () => {
  const isNewLine = (change: Partial<FollowUpProgress>) =>
    progressKey({ ...WATCHING, ...change }) !== progressKey(WATCHING);
  expect(isNewLine({ polls: 4, nextPollAt: '2030-01-01T00:01:00.000Z', responseCounts: { active: 4 } })).toBe(
    false,
  );
  expect([isNewLine({ phase: 'confirming' }), isNewLine({ lastResponse: 'http 503' })]).toEqual([true, true]);
});

const nowhere = { write: () => undefined };
const session = new Session({}, Readable.from([]), nowhere, nowhere, 'starter');

it.each<[Partial<FollowUpProgress>, object]>([
  [{}, { 'next read': expect.stringContaining('2030-01-01T00:00:11.500Z (in ') }],
  [
    { phase: 'needs-decision', deliveryUnknownReason: 'ECONNRESET: read' },
    {
      why: 'it is unknown whether the message arrived: ECONNRESET: read',
      'what to do':
        'check the job, then decide: starter resolve w delivered (or not-delivered). With delivered, the watch starts. ' +
        'With not-delivered, the message is sent once more, unless a read shows that it arrived',
    },
  ],
  [{ phase: 'verifying' as never }, { phase: 'verifying', action: expect.stringContaining('newer') }],
  [
    { job: { ...JOB, status: 'blocked' }, lastResponse: 'blocked' },
    {
      status: 'blocked',
      'last response': 'blocked',
      why: expect.stringContaining('this version does not know the status of the job'),
      'what to do': expect.stringContaining('check the job in the agent service'),
    },
  ],
  [
    { evidence: 'unchanged' },
    { evidence: 'unchanged (no read showed a turn after the message, so check the job)' },
  ],
  [{ evidence: 'seen-active' }, { evidence: 'seen-active' }],
  [
    { phase: 'waiting-for-job' },
    {
      action: expect.stringContaining('waits for the job lock'),
      'what to do': expect.stringContaining('holds the job lock, cancel that follow-up to send sooner'),
    },
  ],
  [{ phase: 'unauthorized' }, { 'what to do': expect.stringContaining('AGENT_API_KEY') }],
  // The follow-up was cancelled before its send. The follow-up had no watch, and an operator has no cause to fix.
  [
    { phase: 'cancelled', delivery: NOT_SENT },
    {
      action: 'none; the follow-up was cancelled, and the agent continues if the message arrived',
      'what to do': 'to send the message nevertheless, run `agent-follow-up retry` with the workflow ID',
    },
  ],
  [
    { phase: 'cancelled', delivery: { verdict: 'rejected', confirmedBy: null, sends: 1 } },
    {
      'what to do': expect.stringContaining(
        'fix the cause, then run `agent-follow-up retry` with the workflow ID',
      ),
    },
  ],
])('formats the status rows of the progress %j', (change, rows) => {
  expect(
    Object.fromEntries(progressRows(session, { workflowId: 'w' }, { ...WATCHING, ...change })),
  ).toMatchObject(rows);
});

it('formats batch progress with percentage, counts and unusual states, and an item with its error', () => {
  const progress: BatchProgress = {
    ...{ batchId: 'nightly', state: 'paused', message: null, items: 200, ended: 50, firstFailures: [] },
    ...{ byStatus: { completed: 45, failed: 3 }, byFailure: { JobNotFound: 2 }, byEvidence: {} },
    ...{ unknownDeliveries: 4, startedAt: '2026-07-31T08:00:00.000Z', endedAt: null },
    ...{ open: 10, concurrency: 10 },
  };
  const counts = '50 of 200 · 25 % · running 10 · completed 45 · failed 3 · JobNotFound 2';
  expect(batchLine({ ...progress, state: 'running', unknownDeliveries: 0 })).toBe(counts);
  expect(batchLine(progress)).toBe(`paused ("batch resume" resumes it) · ${counts} · unknown deliveries 4`);
  const waits = "The item w can't proceed: no key";
  expect(batchLine({ ...progress, state: 'running', message: waits, unknownDeliveries: 0 })).toBe(
    `${counts} · ${waits}`,
  );
  const end = { ...ITEM_RESULT, outcome: 'JobNotFound', delivery: null, message: 'no such job' } as const;
  expect(itemLine(end)).toBe('2026-01-01T00:00:00Z  JobNotFound       -         p/j  no such job');
});

it.each([
  [true, 'xterm', ['\r\u001b[2Kwatching · active …', '\r\u001b[2Kdone', '\r\u001b[2K']],
  [false, 'xterm', ['TIME watching · active · poll 1\n', 'TIME done\n']],
  [true, 'dumb', ['TIME watching · active · poll 1\n', 'TIME done\n']],
])(
  'rewrites the progress line within the width of a terminal, and otherwise prints a new line for each change: isTTY %j, TERM %s',
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

it('removes control characters and line breaks from printed text, so that it can’t control a terminal or leave its table cell', () => {
  expect(printable('a\u001b[31mred\u001b[0m\u001b]0;title\u0007 b')).toBe('ared b');
  expect(printable('one\r\ntwo\u0007\u009b2J\u202egpj.exe')).not.toMatch(/[\p{Cc}\u202e]/u);
  const rows = table(['PROJECT', 'JOB'], [['me\u001b[2J\nyou', 'j']]);
  expect(rows.split('\n')).toEqual(['PROJECT  JOB', 'me you   j']);
});

it.each<[string, FollowUpErrorCode | null, string | null, string]>([
  ['a started retry', null, null, 'retried'],
  ['a run that runs again', 'STILL_RUNNING', 'running', 'skipped'],
  ['a run that was already retried', 'RETRY_NOT_ALLOWED', 'retried', 'skipped'],
  ['a run without a receipt', 'RETRY_NOT_ALLOWED', null, 'failed'],
  ['a lost history', 'NOT_FOUND', null, 'failed'],
])('retry with a filter counts %s, with the code %j and the state %j, as %s', (_, code, state, expected) => {
  const error = code && new FollowUpError(code, 'message', state === null ? {} : { state });
  expect(stateOf({ runId: code === null ? 'run' : null, error })).toBe(expected);
});
