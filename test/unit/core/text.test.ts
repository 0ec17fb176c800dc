import { describe, expect, it } from '@jest/globals';
import { quote, safeJson, visible } from '../../../src/core/text';

const HOSTILE = 'a\u0000\u001b[2J\u009b2J\u2028\u202e\u2067\ud800b\n\u200f';

describe('a text from outside', () => {
  it('becomes one line that is well-formed and has no control characters', () => {
    expect(visible('one\ntwo\u0085\ud800')).toBe('one two \ufffd');
    expect(visible(HOSTILE)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u200f\u202e\u2067]/u);
    expect(visible(HOSTILE).isWellFormed()).toBe(true);
  });

  it('is not changed where it is only text', () => {
    const text = 'Ünïcode, 日本語 and 🙂 — "quoted" \\ back';
    expect(visible(text)).toBe(text);
  });

  it('is quoted as JSON, without splitting a pair where it is cut', () => {
    expect(quote('say "hi"')).toBe('"say \\"hi\\""');
    expect(quote('123456🙂', 8)).toBe('"123456🙂"');
    expect(quote('123456🙂', 7)).toBe('"123456…"');
    expect(quote('1234567🙂9', 9)).toBe('"1234567…"');
    expect(quote(HOSTILE)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u200f\u202e\u2067]/u);
    expect(quote(HOSTILE).isWellFormed()).toBe(true);
    expect(quote(undefined)).toBe('undefined');
    expect(quote([HOSTILE], 20)).toHaveLength(20);
  });

  it('in a JSON document is still the same text', () => {
    const json = safeJson({ [HOSTILE]: HOSTILE });
    expect(json).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u200f\u202e\u2067]/u);
    expect(JSON.parse(json)).toEqual({ [HOSTILE]: HOSTILE });
  });
});
