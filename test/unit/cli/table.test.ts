import { describe, expect, it } from '@jest/globals';
import { columns, table } from '../../../src/cli/render/text';

describe('a table', () => {
  it('has columns as wide as their widest cell, counted as a terminal shows them', () => {
    const rows = [
      ['日本語', 'x'],
      ['e\u0301', '👩‍👩‍👧‍👦'],
    ];
    expect(table(['ID', 'NAME'], rows)).toBe('ID      NAME\n日本語  x\ne\u0301       👩‍👩‍👧‍👦');
  });

  it('keeps each cell on its line', () => {
    expect(table(['A', 'B'], [['one\ntwo', '\u001b[2J']])).toBe('A        B\none two  ');
  });
});

describe('names and values', () => {
  it('stand in two columns', () => {
    const rows: [string, string][] = [
      ['status', 'done'],
      ['id', '日本'],
    ];
    expect(columns(rows, '  ')).toBe('  status  done\n  id      日本');
  });

  it('may be none', () => {
    expect(columns([])).toBe('');
  });
});
