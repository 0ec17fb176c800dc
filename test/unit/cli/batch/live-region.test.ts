import { describe, expect, it } from '@jest/globals';
import { LiveRegion, sizeOf } from '../../../../src/cli/render/batch-view';

function terminal(size: { columns?: number; rows?: number }) {
  const written: string[] = [];
  const stream = { ...size, isTTY: true, write: (text: string) => written.push(text) };
  return { stream, written };
}

const CLEAR_DOWN = '\u001b[0J';
const up = (lines: number): string => `\u001b[${lines}A`;

describe('the live region', () => {
  it('is rewritten from its first line on, and removed', () => {
    const { stream, written } = terminal({ columns: 80, rows: 24 });
    const region = new LiveRegion(stream);
    region.show(['one', 'two', 'three']);
    region.show(['four']);
    region.clear();
    region.clear();
    expect(written).toEqual(['one\ntwo\nthree', `\r${up(2)}${CLEAR_DOWN}four`, `\r${CLEAR_DOWN}`]);
  });

  it('knows that a terminal that was made narrower has wrapped its lines', () => {
    const { stream, written } = terminal({ columns: 80, rows: 24 });
    const region = new LiveRegion(stream);
    region.show(['x'.repeat(70), '日'.repeat(30), '']);
    stream.columns = 40;
    region.clear();
    // Two lines each, and the empty one; the cursor stands in the last.
    expect(written.at(-1)).toBe(`\r${up(4)}${CLEAR_DOWN}`);
  });

  it('does not move above the screen', () => {
    const { stream, written } = terminal({ columns: 80, rows: 24 });
    const region = new LiveRegion(stream);
    region.show(Array.from({ length: 20 }, () => 'x'));
    stream.rows = 5;
    region.clear();
    expect(written.at(-1)).toBe(`\r${up(4)}${CLEAR_DOWN}`);
  });

  it('takes 80 by 24 for a terminal that does not tell', () => {
    expect(sizeOf(terminal({}).stream)).toEqual({ columns: 80, rows: 24 });
  });
});
