import { describe, expect, it } from '@jest/globals';
import { meterOf, ProgressLine } from '../../src/cli/wait';

/** A stream that keeps what is written to it. */
function screen(options: { isTTY: boolean; columns?: number }) {
  const written: string[] = [];
  const stream = { ...options, write: (text: string) => written.push(text) };
  return { stream, written };
}

describe('on a terminal', () => {
  it('one line is rewritten, within the width, and removed at the end', () => {
    const { stream, written } = screen({ isTTY: true, columns: 20 });
    const line = new ProgressLine(stream, { TERM: 'xterm' });
    line.show('watching · active · poll 1', 'a');
    line.show('watching · active · poll 2', 'a');
    line.clear();
    expect(written).toEqual(['\r\u001b[2Kwatching · active …', '\r\u001b[2K']);
  });

  it('escapes of the service do not reach it', () => {
    const { stream, written } = screen({ isTTY: true, columns: 80 });
    new ProgressLine(stream, {}).show('status \u001b[2J\u001b]0;x\u0007', 'a');
    expect(written).toEqual(['\r\u001b[2Kstatus ']);
  });
});

describe('elsewhere', () => {
  it('there is a line for each change, with its time, and none for the passing of time', () => {
    const { stream, written } = screen({ isTTY: false });
    const line = new ProgressLine(stream, {});
    line.show('next in 2s', 'one');
    line.show('next in 1s', 'one');
    line.show('done', 'two');
    line.clear();
    expect(written).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\dZ next in 2s\n$/),
      expect.stringMatching(/^\d\d:\d\d:\d\dZ done\n$/),
    ]);
  });

  it('a dumb terminal counts as such', () => {
    const { stream, written } = screen({ isTTY: true });
    new ProgressLine(stream, { TERM: 'dumb' }).show('x', 'x');
    expect(written.join('')).not.toContain('\u001b');
  });
});

describe('the meter of many items', () => {
  it('shows the share at once, rate and time left after five seconds', () => {
    const meter = meterOf();
    expect(meter(0, 200, 0)).toBe('0 of 200 · 0 %');
    expect(meter(30, 200, 4_999)).toBe('30 of 200 · 15 %');
    expect(meter(50, 200, 5_000)).toBe('50 of 200 · 25 % · 600/min · 15s left');
    expect(meter(199, 200, 60_000)).toBe('199 of 200 · 99 % · 199/min · 1s left');
    expect(meter(200, 200, 60_000)).toBe('200 of 200 · 100 % · 200/min');
  });

  it('counts what settled while it looked', () => {
    const meter = meterOf();
    expect(meter(1_000, 2_000, 0)).not.toContain('/min');
    expect(meter(1_000, 2_000, 30_000)).toMatch(/0\.0\/min$/);
    expect(meter(1_030, 2_000, 60_000)).toContain('· 30/min · 32m 20s left');
  });
});
