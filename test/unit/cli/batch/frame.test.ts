import { describe, expect, it } from '@jest/globals';
import { type BatchPicture, drawBatch } from '../../../../src/cli/render/batch-frame';
import { widthOf } from '../../../../src/cli/render/text';
import { end, NOW, progress } from './example';

const LARGE = { columns: 110, rows: 30 };

function picture(change: Partial<BatchPicture> = {}): BatchPicture {
  return { progress: progress(), trouble: null, perMinute: 75, events: [end(1), end(2)], ...change };
}

describe('the live view of a batch', () => {
  it('shows state, bar, rate, time left, counts, and the last ends with their links', () => {
    expect(drawBatch(picture(), LARGE, NOW)).toEqual([
      'Batch nightly · running · 30s',
      '██████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  50 of 200 · 25 % · 75/min · 2m left',
      'open 10 · completed 45 · failed 3 · JobNotFound 2 · to come 140',
      '',
      '07:59:31  completed         docs/job-1  https://example.test/pull/1',
      '07:59:32  completed         docs/job-2  https://example.test/pull/2',
    ]);
  });

  it('says nothing of rate and time left while nobody can tell', () => {
    const [, bar] = drawBatch(picture({ perMinute: null }), LARGE, NOW);
    expect(bar).toMatch(/ {2}50 of 200 · 25 %$/);
    const [, still] = drawBatch(picture({ perMinute: 0 }), LARGE, NOW);
    expect(still).toMatch(/· 0\.0\/min$/);
  });

  it('promises no time left to a batch that is paused, and says how it goes on', () => {
    const [title, bar] = drawBatch(picture({ progress: progress({ state: 'paused' }) }), LARGE, NOW);
    expect(title).toContain('paused; "batch resume" goes on');
    expect(bar).not.toContain('left');
  });

  it('tells unknown deliveries, and pages that are not handed over yet', () => {
    const pages = { total: 7, handedOver: 3, done: 0 };
    const lines = drawBatch(picture({ progress: progress({ unknownDeliveries: 4, pages }) }), LARGE, NOW);
    expect(lines.join('\n')).toContain('unknown deliveries 4');
    expect(lines[0]).toContain('3 of 7 pages handed over');
  });

  it('shows what went wrong in place of a link', () => {
    const failed = end(3, { outcome: 'JobNotFound', prLink: null, message: 'no such job' });
    expect(drawBatch(picture({ events: [failed] }), LARGE, NOW).at(-1)).toBe(
      '07:59:33  JobNotFound       docs/job-3  no such job',
    );
  });

  it('shows why it is not current, and what it knew', () => {
    const lines = drawBatch(picture({ trouble: 'no worker answers' }), LARGE, NOW);
    expect(lines[3]).toBe('no worker answers');
    expect(lines[0]).toContain('running');
    expect(drawBatch(picture({ progress: null, trouble: 'no worker answers' }), LARGE, NOW)).toEqual([
      'no worker answers',
    ]);
  });

  it('gives a link a line of its own where it would be cut', () => {
    const lines = drawBatch(picture({ events: [end(1)] }), { columns: 46, rows: 20 }, NOW);
    expect(lines.slice(-2)).toEqual([
      '07:59:31  completed         docs/job-1',
      '  https://example.test/pull/1',
    ]);
  });

  it('has fewer lines than the screen, and none as wide, at every size', () => {
    const many = Array.from({ length: 8 }, (_, index) => end(index, { jobId: `日本語-${index}` }));
    for (let columns = 1; columns <= 120; columns += 1) {
      for (let rows = 1; rows <= 20; rows += 1) {
        const lines = drawBatch(picture({ events: many, trouble: 'x'.repeat(90) }), { columns, rows }, NOW);
        expect(lines.length).toBeLessThanOrEqual(Math.max(1, rows - 1));
        const widest = Math.max(...lines.map(widthOf));
        expect(widest).toBeLessThanOrEqual(Math.max(1, columns - 1));
      }
    }
  });

  it('keeps what matters most on a small screen', () => {
    expect(drawBatch(picture(), { columns: 80, rows: 2 }, NOW)).toEqual([
      expect.stringContaining('50 of 200'),
    ]);
    expect(drawBatch(picture(), { columns: 24, rows: 2 }, NOW)).toEqual(['50 of 200 · 25 %']);
    const latest = drawBatch(picture({ events: [end(1), end(2)] }), { columns: 80, rows: 6 }, NOW);
    expect(latest.at(-1)).toContain('docs/job-2');
    expect(latest.join('\n')).not.toContain('docs/job-1');
  });

  it('lets no escape of the service through', () => {
    const evil = end(1, { jobId: 'j\u001b[2J\n', prLink: 'https://x/\u001b]0;y\u0007\r' });
    const known = progress({ batchId: 'b\u001b[2J', byFailure: { 'x\u0007': 1 } });
    const shown = picture({ progress: known, trouble: 'no\u001b[1A', events: [evil] });
    const text = drawBatch(shown, LARGE, NOW).join('');
    // eslint-disable-next-line no-control-regex -- control characters are what it is about
    expect(text).not.toMatch(/[\u0000-\u001f\u007f]/);
  });
});
