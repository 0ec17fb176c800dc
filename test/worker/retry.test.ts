import { describe, expect, it } from '@jest/globals';
import { FollowUpError, type FollowUpErrorCode } from '../../src/core/errors';
import { untilItWorks, waitAfterMs, type Waiting } from '../../src/worker/temporal';

function waiting(change: Partial<Waiting> = {}): Waiting & { readonly said: string[] } {
  const said: string[] = [];
  return {
    signal: new AbortController().signal,
    explain: (error) => new FollowUpError('UNREACHABLE', String(error)),
    onTrouble: (message, nextTryMs) => said.push(`${message}, ${nextTryMs}`),
    said,
    ...change,
  };
}

describe('waiting for what is not there yet', () => {
  it('waits 1, 2, 4, 8 and then always 10 seconds', () => {
    expect([1, 2, 3, 4, 5, 6, 500, 5_000].map(waitAfterMs)).toEqual([
      1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000,
    ]);
  });

  it('tries again after trouble that heals, and says what it was', async () => {
    const each = waiting();
    let attempts = 0;
    const attempt = () => (++attempts < 2 ? Promise.reject(new Error('down')) : Promise.resolve('up'));
    expect(await untilItWorks(attempt, each)).toBe('up');
    expect(each.said).toEqual(['Error: down, 1000']);
  });

  it.each<FollowUpErrorCode>(['UNAUTHORIZED', 'MISCONFIGURED'])(
    'gives up at once where it is %s',
    async (code) => {
      const hopeless = new FollowUpError(code, 'no');
      const each = waiting({ explain: () => hopeless });
      await expect(untilItWorks(() => Promise.reject(new Error('no')), each)).rejects.toBe(hopeless);
      expect(each.said).toEqual([]);
    },
  );

  it('ends by its signal while it waits, and while an attempt stays without an answer', async () => {
    const reason = new Error('SIGTERM');
    for (const attempt of [() => Promise.reject(new Error('down')), () => new Promise(() => undefined)]) {
      const controller = new AbortController();
      const ended = untilItWorks(attempt, waiting({ signal: controller.signal }));
      setImmediate(() => {
        controller.abort(reason);
      });
      await expect(ended).rejects.toBe(reason);
    }
  });
});
