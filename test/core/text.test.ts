import { describe, expect, it } from '@jest/globals';
import { plainText, quote, safeJson, singleLine, visible } from '../../src/core/text';

const HOSTILE = 'a\u0000\u001b[2J\u009b2J\u2028\u202e\u2067\ud800b\n\u200f';
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u200f\u202e\u2067]/u;

describe('a text from outside', () => {
  it.each([
    ['one line', visible],
    ['a field', (text: string) => plainText(text, 64)],
    ['a message', (text: string) => singleLine(text, 64)],
    ['a quotation', (text: string) => quote(text)],
  ])('is well-formed and has no control characters as %s', (_, made) => {
    expect(made(HOSTILE)).not.toMatch(UNSAFE);
    expect(made(HOSTILE).isWellFormed()).toBe(true);
    expect(made('Ünïcode, 日本語 🙂 —')).toContain('Ünïcode, 日本語 🙂 —');
  });

  it('as a field is another word where something was replaced, and is cut at its limit', () => {
    expect(plainText('completed\u0000', 64)).toBe('completed\ufffd');
    expect(plainText('x'.repeat(100), 64)).toHaveLength(64);
  });

  it('as a message is one line, cut at its limit and never through a surrogate pair', () => {
    expect(singleLine(' http 500:\r\n\u001b[31mred\u2029\ud800 ', 100)).toBe('http 500: [31mred \ufffd');
    for (let limit = 1; limit < 12; limit += 1) {
      expect(singleLine('🎉'.repeat(10), limit).isWellFormed()).toBe(true);
      expect(singleLine('🎉'.repeat(10), limit).length).toBeLessThanOrEqual(limit);
    }
  });

  it('is quoted as JSON, without splitting a pair where it is cut', () => {
    expect(quote('say "hi"')).toBe('"say \\"hi\\""');
    expect(quote('123456🙂', 8)).toBe('"123456🙂"');
    expect(quote('123456🙂', 7)).toBe('"123456…"');
    expect(quote(undefined)).toBe('undefined');
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect([10n, circle].map((value) => quote(value))).toEqual(['of type bigint', 'of type object']);
    expect(quote([HOSTILE], 20)).toHaveLength(20);
  });

  it('in a JSON document is still the same text', () => {
    const json = safeJson({ [HOSTILE]: HOSTILE });
    expect(json).not.toMatch(UNSAFE);
    expect(JSON.parse(json)).toEqual({ [HOSTILE]: HOSTILE });
  });
});
