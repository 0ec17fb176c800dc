import { describe, expect, it } from '@jest/globals';
import { fitColumns, printable, table } from '../../../src/cli/render/text';

it('text from the wire cannot steer the terminal', () => {
  expect(printable('a\u001b[31mred\u001b[0m\u001b]0;title\u0007 b')).toBe('ared b');
  expect(printable('one\r\ntwo\u0007\u009b2J\u202egpj.exe')).not.toMatch(/[\p{Cc}\u202e]/u);
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

describe('a table', () => {
  it('has columns as wide as their widest cell, counted as a terminal shows them', () => {
    const rows = [
      ['日本語', 'x'],
      ['e\u0301', '👩‍👩‍👧‍👦'],
    ];
    expect(table(['ID', 'NAME'], rows)).toBe('ID      NAME\n日本語  x\ne\u0301       👩‍👩‍👧‍👦');
  });

  it('keeps each cell on its line', () => {
    expect(table(['A', 'B'], [['one\ntwo', '\u001b[2J']])).toBe('A        B\none two');
  });
});
