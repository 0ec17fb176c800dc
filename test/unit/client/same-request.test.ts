import { describe, expect, it } from '@jest/globals';
import { compareDigest, compareRequests, promptDigest } from '../../../src/temporal/existing-run';
import { planOf } from '../../../src/client/start';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Fix it.', requestId: 'r' };

describe('a request whose follow-up exists', () => {
  it('is the same with the same prompt, and with defaults written out', () => {
    const same = { samePrompt: true, differences: [] };
    expect(compareRequests(planOf(REQUEST), REQUEST)).toEqual(same);
    expect(
      compareRequests(planOf(REQUEST), { ...REQUEST, deadline: '24h', polling: { growth: 0.1 } }),
    ).toEqual(same);
    expect(compareRequests(planOf({ ...REQUEST, deadline: '1440m' }), REQUEST)).toEqual(same);
  });

  it.each([['Fix it'], ['Fix it. '], ['fix it.'], ['']])('is another one with the prompt %j', (prompt) => {
    expect(compareRequests(planOf(REQUEST), { ...REQUEST, prompt })).toEqual({ samePrompt: false });
  });

  it('keeps its own options, and each that differs is named', () => {
    const existing = {
      ...REQUEST,
      deadline: '2h',
      whenActive: 'wait',
      polling: { initial: '1s', timerPolls: 'all' },
    };
    expect(compareRequests(planOf({ ...REQUEST, deadline: '7201s' }), existing)).toEqual({
      samePrompt: true,
      differences: [
        'whenActive is wait there, not send',
        'deadline is 2h there, not 7201s',
        'polling.initial is 1s there, not 5s',
        'polling.timerPolls is all there, not 3',
      ],
    });
  });

  it.each([[undefined], [null], ['text'], [{ continued: {} }], [{ prompt: 7 }]])(
    'cannot be compared with the input %j',
    (input) => {
      expect(compareRequests(planOf(REQUEST), input)).toEqual({ samePrompt: 'unknown' });
    },
  );

  it('whose input was refused has no options to compare', () => {
    expect(compareRequests(planOf(REQUEST), { ...REQUEST, deadline: 'soon' })).toEqual({
      samePrompt: true,
      differences: [],
    });
  });
});

describe('by the memo alone', () => {
  const memo = { followUpPromptSha256: promptDigest(REQUEST.prompt) };

  it('the message is compared by its digest', () => {
    expect(compareDigest(planOf(REQUEST), memo)).toEqual({ samePrompt: true, differences: [] });
    expect(compareDigest(planOf({ ...REQUEST, prompt: 'Other.' }), memo)).toEqual({ samePrompt: false });
  });

  it.each([[undefined], [{}], [{ followUpPromptSha256: 7 }]])('cannot be compared by %j', (other) => {
    expect(compareDigest(planOf(REQUEST), other)).toEqual({ samePrompt: 'unknown' });
  });
});
