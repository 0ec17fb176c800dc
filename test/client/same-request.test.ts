import { describe, expect, it } from '@jest/globals';
import { compareRequests } from '../../src/temporal/existing-run';
import { digestOf } from '../../src/core/ids';
import { planOf } from '../../src/client/start';

const REQUEST = { projectId: 'p', jobId: 'j', prompt: 'Fix it.', requestId: 'r' };
const SAME = { promptCompared: true, differences: [] };
const NOT_COMPARED = { promptCompared: false, differences: [] };

describe('a request whose follow-up exists', () => {
  it('is the same with the same prompt, and with defaults written out', () => {
    const explicit = { ...REQUEST, deadline: '24h', polling: { growth: 0.1 } };
    expect(compareRequests(planOf(REQUEST), REQUEST)).toEqual(SAME);
    expect(compareRequests(planOf(REQUEST), explicit)).toEqual(SAME);
    expect(compareRequests(planOf({ ...REQUEST, deadline: '1440m' }), REQUEST)).toEqual(SAME);
  });

  it.each([['Fix it'], ['Fix it. '], ['fix it.'], ['']])('is another one with the prompt %j', (prompt) => {
    expect(compareRequests(planOf(REQUEST), { ...REQUEST, prompt })).toBeNull();
  });

  it('keeps its own options, and each that differs is named', () => {
    const existing = {
      ...REQUEST,
      deadline: '2h',
      whenActive: 'wait',
      polling: { initial: '1s', timerPolls: 'all' },
    };
    expect(compareRequests(planOf({ ...REQUEST, deadline: '7201s' }), existing)).toEqual({
      promptCompared: true,
      differences: [
        'whenActive is wait there, not send',
        'deadline is 2h there, not 7201s',
        'polling.initial is 1s there, not 5s',
        'polling.timerPolls is all there, not 2',
      ],
    });
  });

  it.each([[undefined], [null], ['text'], [{ continued: {} }], [{ prompt: 7 }]])(
    'cannot be compared with the input %j',
    (input) => {
      expect(compareRequests(planOf(REQUEST), input)).toEqual(NOT_COMPARED);
    },
  );
});

describe('by the memo alone', () => {
  it('the message is compared by its digest', () => {
    const memo = { followUpPromptSha256: digestOf(REQUEST.prompt) };
    expect(compareRequests(planOf(REQUEST), undefined, memo)).toEqual(SAME);
    expect(compareRequests(planOf({ ...REQUEST, prompt: 'Other.' }), undefined, memo)).toBeNull();
  });

  it.each([[undefined], [{}], [{ followUpPromptSha256: 7 }]])('cannot be compared by %j', (other) => {
    expect(compareRequests(planOf(REQUEST), undefined, other)).toEqual(NOT_COMPARED);
  });
});
