import { describe, expect, it } from '@jest/globals';
import { countAnswer } from '../../../src/core/tally';

describe('the counts of what was observed', () => {
  it('grow by one for each answer', () => {
    expect(countAnswer(countAnswer(countAnswer({}, 'active'), 'active'), 'http 503')).toEqual({
      active: 2,
      'http 503': 1,
    });
  });

  it('hold 32 names at most; further ones count as other', () => {
    let observed: Record<string, number> = {};
    for (let i = 0; i < 100; i++) observed = countAnswer(observed, `word ${i}`);
    expect(Object.keys(observed)).toHaveLength(33);
    expect(observed.other).toBe(68);
    expect(countAnswer(observed, 'word 3')['word 3']).toBe(2);
  });

  it('takes any word as a name', () => {
    expect(Object.entries(countAnswer(countAnswer({}, '__proto__'), '__proto__'))).toEqual([
      ['__proto__', 2],
    ]);
    expect(countAnswer({}, 'constructor')).toEqual({ constructor: 1 });
  });
});
