import { describe, expect, it } from '@jest/globals';
import { fitColumns, printable, printableJson } from '../../../src/cli/render/text';

describe('text from the wire', () => {
  it('cannot steer the terminal', () => {
    expect(printable('a\u001b[31mred\u001b[0m\u001b]0;title\u0007 b')).toBe('ared b');
    expect(printable('one\r\ntwo\u0007\u009b2J\u202egpj.exe')).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  it('is not changed where it is only text', () => {
    const text = 'Ünïcode, 日本語 and 🙂 — "quoted" \\ back';
    expect(printable(text)).toBe(text);
  });

  it('is the same document in JSON, with what a terminal obeys as escapes', () => {
    const value = { words: 'a\u001b[31m\u009b2J\u202e"' };
    const json = printableJson(value);
    for (const character of ['\u001b', '\u009b', '\u202e']) expect(json).not.toContain(character);
    expect(JSON.parse(json)).toEqual(value);
  });
});

describe('a line that must fit the terminal', () => {
  it('is left alone when it fits exactly', () => {
    expect(fitColumns('12345', 5)).toBe('12345');
  });

  it('ends in an ellipsis inside the width when it does not', () => {
    expect(fitColumns('123456', 5)).toBe('1234…');
  });

  it('counts two columns for East Asian characters and emoji, and none for combining marks', () => {
    expect(fitColumns('日本語', 6)).toBe('日本語');
    expect(fitColumns('日本語', 5)).toBe('日本…');
    expect(fitColumns('🙂🙂', 3)).toBe('🙂…');
    expect(fitColumns('e\u0301e\u0301', 2)).toBe('e\u0301e\u0301');
  });
});
