import { describe, expect, it } from '@jest/globals';
import { plainText, singleLine, truncate } from '../../../src/core/text';

describe('a field from outside', () => {
  it.each([
    ['a lone surrogate', 'completed\ud800', 'completed\ufffd'],
    ['a control character', 'completed\u0000', 'completed\ufffd'],
    ['a line separator', 'com\u2028pleted', 'com\ufffdpleted'],
    ['a direction mark', '\u202edetelpmoc', '\ufffddetelpmoc'],
  ])('with %s is another word, and well-formed', (_, text, expected) => {
    expect(plainText(text, 64)).toBe(expected);
    expect(plainText(text, 64).isWellFormed()).toBe(true);
  });

  it('keeps what people write, and is cut at its limit', () => {
    expect(plainText('Überschrift 🎉', 64)).toBe('Überschrift 🎉');
    expect(plainText('x'.repeat(100), 64)).toHaveLength(64);
  });
});

describe('a message', () => {
  it('is one line, without what is unsafe in it', () => {
    expect(singleLine(' http 500:\r\n\u001b[31mred\u2029\ud800 ', 100)).toBe('http 500: [31mred \ufffd');
  });

  it('is cut at its limit, and never through a surrogate pair', () => {
    for (let limit = 1; limit < 12; limit += 1) {
      expect(truncate('🎉'.repeat(10), limit).isWellFormed()).toBe(true);
      expect(singleLine('🎉'.repeat(10), limit).length).toBeLessThanOrEqual(limit);
    }
  });
});
