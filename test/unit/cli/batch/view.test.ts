import { describe, expect, it } from '@jest/globals';
import { batchView } from '../../../../src/cli/render/batch-view';
import { end, NOW, progress } from './example';

function screen(options: { isTTY: boolean; columns?: number; rows?: number }, env = {}) {
  let text = '';
  const stream = { ...options, write: (more: string) => (text += more) };
  return { view: batchView(stream, env), written: () => text };
}

describe('where lines can not be rewritten', () => {
  it('there is a line at once, for a change of state, and for numbers every ten seconds', () => {
    const { view, written } = screen({ isTTY: false });
    view.show(progress(), [], NOW);
    view.show(progress({ settled: 51 }), [], NOW + 1_000);
    view.show(progress({ settled: 52, state: 'paused' }), [], NOW + 2_000);
    view.show(progress({ settled: 52, state: 'paused' }), [], NOW + 30_000);
    view.show(progress({ settled: 60 }), [], NOW + 60_000);
    view.show(progress({ settled: 61 }), [], NOW + 69_999);
    view.show(progress({ settled: 80 }), [], NOW + 70_000);
    expect(written().split('\n').slice(0, -1)).toEqual([
      '08:00:30Z running · 50 of 200 settled · open 10 · completed 45 · failed 3 · JobNotFound 2 · to come 140',
      expect.stringMatching(/^08:00:32Z paused · 52 of 200 settled · [^/]*$/),
      expect.stringMatching(/^08:01:30Z running · 60 of 200 .* · 10\/min · 14m left$/),
      expect.stringMatching(/^08:01:40Z running · 80 of 200 .* · 26\/min · 4m 40s left$/),
    ]);
  });

  it('each failure has a line', () => {
    const { view, written } = screen({ isTTY: true }, { TERM: 'dumb' });
    const failures = [
      end(2, { outcome: 'failed', prLink: null }),
      end(3, { outcome: 'JobNotFound', prLink: null, message: 'no such\u001b[2J job' }),
    ];
    view.show(progress(), [end(1), ...failures, end(4, { outcome: 'archived' })], NOW);
    view.clear();
    expect(written().split('\n').slice(0, 2)).toEqual([
      '08:00:30Z failed  docs/job-2',
      '08:00:30Z JobNotFound  docs/job-3  no such job',
    ]);
    expect(written().split('\n')).toHaveLength(4);
  });

  it('trouble is told once', () => {
    const { view, written } = screen({ isTTY: false });
    view.showTrouble('no worker answers', NOW);
    view.showTrouble('no worker answers', NOW + 1_000);
    expect(written()).toBe('08:00:30Z no worker answers\n');
  });
});

describe('on a terminal', () => {
  it('the last eight ends stay in sight', () => {
    const { view, written } = screen({ isTTY: true, columns: 100, rows: 40 });
    for (let number = 1; number <= 12; number += 1) view.show(progress(), [end(number)], NOW);
    const last = written().split('\u001b[0J').at(-1) ?? '';
    expect(last.match(/docs\/job-\d+/g)).toEqual([5, 6, 7, 8, 9, 10, 11, 12].map((n) => `docs/job-${n}`));
  });

  it('trouble stands beside what was known, and goes when there is news', () => {
    const { view, written } = screen({ isTTY: true, columns: 100, rows: 40 });
    view.show(progress(), [], NOW);
    view.showTrouble('no worker answers', NOW);
    expect(written().split('\u001b[0J').at(-1)).toMatch(/50 of 200[^]*no worker answers$/);
    view.show(progress(), [], NOW);
    expect(written().split('\u001b[0J').at(-1)).not.toContain('no worker');
  });
});
