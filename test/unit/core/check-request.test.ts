import { describe, expect, it } from '@jest/globals';
import { checkRequest } from '../../../src/core/check-request';
import { problemText } from '../../../src/core/problem';
import { REQUEST_OPTIONS, type RequestOption, requestWith } from '../../../src/core/request-options';

const good = { projectId: 'docs', jobId: 'job-1', prompt: 'Fix the links.', requestId: 'r1' };
const goodId = 'follow-up:docs:job-1:r1';

function withoutName() {
  const { projectId, jobId, prompt } = good;
  return { projectId, jobId, prompt };
}

function problemsOf(input: unknown, workflowId?: string): readonly string[] {
  const checked = checkRequest(input, workflowId);
  return checked.ok ? [] : checked.problems.map((problem) => problemText(problem));
}

describe('checkRequest', () => {
  it('fills in every default', () => {
    expect(checkRequest(good)).toEqual({
      ok: true,
      plan: {
        ...good,
        whenActive: 'send',
        onUnknownDelivery: 'fail',
        deadlineMs: 86_400_000,
        polling: { initialMs: 5_000, growth: 0.1, maximumMs: 300_000, jitter: 0.1, timerPolls: 3 },
        reconcileMs: 120_000,
        settleMs: 30_000,
        confirmMs: 30_000,
      },
    });
  });

  it('takes what the caller asks for', () => {
    const asked = {
      ...good,
      whenActive: 'wait',
      onUnknownDelivery: 'ask',
      deadline: '2h',
      polling: { initial: '200ms', growth: 0, maximum: '1s', jitter: 0, timerPolls: 'all' },
      reconcile: '0s',
      settle: '1s',
      confirm: '2s',
    };
    expect(checkRequest(asked, goodId)).toMatchObject({
      ok: true,
      plan: {
        whenActive: 'wait',
        onUnknownDelivery: 'ask',
        deadlineMs: 7_200_000,
        polling: { initialMs: 200, growth: 0, maximumMs: 1_000, jitter: 0, timerPolls: 'all' },
        reconcileMs: 0,
        settleMs: 1_000,
        confirmMs: 2_000,
      },
    });
  });

  it.each(Object.entries<RequestOption>(REQUEST_OPTIONS))('carries the option %s', (field, option) => {
    const values = { duration: '4m', number: 0.25, count: 7 };
    const asked = option.kind === 'choice' ? option.choices.at(-1) : values[option.kind];
    const checked = checkRequest({ ...good, ...requestWith([[field, asked]]) });
    const used = checked.ok ? option.of(checked.plan) : checked.problems;
    expect(used).toBe(option.kind === 'duration' ? 240_000 : asked);
  });

  it('names the follow-up by its workflow id where requestId is left out', () => {
    const unnamed = withoutName();
    expect(checkRequest(unnamed, 'nightly-7')).toMatchObject({ ok: true, plan: { requestId: 'nightly-7' } });
    expect(problemsOf(unnamed)).toEqual([expect.stringContaining('requestId: is missing')]);
  });

  it('refuses a workflow id that is not the derived one, and names the right one', () => {
    expect(problemsOf(good, 'my-id')).toEqual([expect.stringContaining(`"${goodId}"`)]);
    expect(problemsOf(good, goodId)).toEqual([]);
  });

  it('finds every problem at once, and each names its field', () => {
    const bad = {
      jobId: '..',
      prompt: '',
      requestId: 7,
      whenActive: 'maybe',
      deadline: 30,
      polling: { initial: '1ms', growth: -1, jitter: 'much', timerPolls: 1.5, every: '5s' },
      reconcile: 'long',
      dealine: '24h',
    };
    expect(problemsOf(bad, 'x').map((problem) => problem.slice(0, problem.indexOf(':')))).toEqual([
      'projectId',
      'jobId',
      'prompt',
      'requestId',
      'whenActive',
      'deadline',
      'reconcile',
      'polling.initial',
      'polling.growth',
      'polling.jitter',
      'polling.timerPolls',
      'polling."every"',
      '"dealine"',
    ]);
  });

  it.each([null, undefined, 'text', 7, [], [good]])('refuses %j, which is no request at all', (input) => {
    expect(problemsOf(input, 'x')).toEqual([expect.stringContaining('must be one JSON object')]);
  });

  it.each([
    ['projectId', '', 'must not be empty'],
    ['projectId', '.', 'no URL can carry it'],
    ['jobId', '..', 'no URL can carry it'],
    ['jobId', 'a\nb', 'control characters'],
    ['jobId', 'a\u0085b', 'control characters'],
    ['jobId', '\ud800', 'lone surrogate'],
    ['jobId', 'x'.repeat(129), 'at most 128 characters; it has 129'],
    ['requestId', '', 'must not be empty'],
    ['prompt', '', 'must not be empty'],
    ['prompt', 'x\udc00', 'lone surrogate'],
    ['prompt', 5, 'must be a text'],
    ['prompt', 'é'.repeat(131_073), 'at most 262144 bytes of UTF-8; it is 262146'],
    ['polling', 'fast', 'must be an object'],
    ['confirm', '24h', 'deadline: must be more than the confirm time'],
  ])('refuses %s = %j: %s', (field, value, words) => {
    expect(problemsOf({ ...good, [field]: value })).toEqual([expect.stringContaining(words)]);
  });

  it('refuses a maximum below the initial interval', () => {
    const problems = problemsOf({ ...good, polling: { initial: '10s', maximum: '5s' } });
    expect(problems).toEqual([
      expect.stringContaining('polling.maximum: must not be below the initial interval'),
    ]);
  });

  it('takes a prompt of exactly 256 KiB, and 128 characters that are not in the basic plane', () => {
    expect(problemsOf({ ...good, prompt: 'x'.repeat(262_144) })).toEqual([]);
    const unnamed = withoutName();
    expect(problemsOf({ ...unnamed, jobId: '🙂'.repeat(128) }, 'x')).toEqual([]);
  });

  it('refuses ids whose workflow id would be too long for the server', () => {
    const long = { ...good, projectId: '日'.repeat(20), jobId: 'j'.repeat(70) };
    expect(problemsOf(long)).toEqual([expect.stringContaining('at most 255 are possible')]);
  });

  it.each([
    ['whenActive', 'x'.repeat(58) + '🙂🙂'],
    ['whenActive', '\ud800'],
    ['whenActive', '\u001b[2J\u009b2J\u2028\u202e'],
    ['x'.repeat(58) + '🙂🙂', 1],
    ['\udc00', 1],
    [
      'polling',
      { ['y'.repeat(59) + '🙂']: 1, growth: '\ud83d', initial: '\ud83d1s', timerPolls: '🙂'.repeat(40) },
    ],
    ['deadline', 'x'.repeat(59) + '🙂'],
  ])('answers %j with a message that every reader can decode and show', (field, value) => {
    const problems = problemsOf({ ...good, [field]: value }, `x${'🙂'.repeat(40)}\u0085`);
    expect(problems).not.toEqual([]);
    for (const problem of problems) {
      expect(problem.isWellFormed()).toBe(true);
      expect(problem).not.toMatch(/[\p{Cc}\u2028\u202e]/u);
    }
  });

  it('is not fooled by a field of the prototype', () => {
    expect(
      problemsOf(JSON.parse('{"__proto__": {"projectId": "p"}, "jobId": "j", "prompt": "x"}'), 'x'),
    ).toEqual([
      expect.stringContaining('projectId: is missing'),
      expect.stringContaining('"__proto__": is not a field'),
    ]);
  });
});
