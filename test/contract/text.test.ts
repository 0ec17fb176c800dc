import { describe, expect, it } from '@jest/globals';
import { sanitizeField, quote, safeJson, singleLine, replaceUnsafe } from '../../src/contract/text';

const HOSTILE = 'a\u0000\u001b[2J\u009b2J\u2028\u202e\u2067\ud800b\n\u200f';
const UNSAFE = /[\p{Cc}\p{Zl}\p{Zp}\u200f\u202e\u2067]/u;

describe('a text from an external source', () => {
  it.each([
    ['one line', replaceUnsafe],
    ['a field', (text: string) => sanitizeField(text, 64)],
    ['a message', (text: string) => singleLine(text, 64)],
    ['a quotation', (text: string) => quote(text)],
  ])('is well-formed and has no control characters as %s', (_, sanitize) => {
    expect(sanitize(HOSTILE)).not.toMatch(UNSAFE);
    expect(sanitize(HOSTILE).isWellFormed()).toBe(true);
    expect(sanitize('Ünïcode, 日本語 🙂 —')).toContain('Ünïcode, 日本語 🙂 —');
  });

  it('has a replacement character for each removed character as a field, and is one line as a message', () => {
    expect(sanitizeField('completed\u0000', 64)).toBe('completed\ufffd');
    expect(singleLine(' http 500:\r\n\u001b[31mred\u2029\ud800 ', 100)).toBe('http 500: [31mred \ufffd');
  });

  it('is cut at its limit, but never inside a surrogate pair', () => {
    for (const limited of [sanitizeField, singleLine]) expect(limited('x'.repeat(20), 9)).toBe('xxxxxxxx…');
    for (const limit of [7, 8]) expect(singleLine('🎉'.repeat(10), limit)).toBe('🎉🎉🎉…');
    expect(quote('123456🙂', 8)).toBe('"123456🙂"');
    expect(quote('123456🙂', 7)).toBe('"123456…"');
    expect(quote([HOSTILE], 20)).toHaveLength(20);
  });

  it('is quoted as JSON, and a value that JSON can’t represent is quoted as its type', () => {
    expect(quote('say "hi"')).toBe('"say \\"hi\\""');
    expect(quote(undefined)).toBe('undefined');
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect([10n, circle].map((value) => quote(value))).toEqual(['of type bigint', 'of type object']);
  });

  it('is escaped in a JSON document, and unchanged after parsing', () => {
    const json = safeJson({ [HOSTILE]: HOSTILE });
    expect(json).not.toMatch(UNSAFE);
    expect(JSON.parse(json)).toEqual({ [HOSTILE]: HOSTILE });
  });
});
