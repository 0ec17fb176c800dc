import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { ProcessEnvironment } from '../harness/process-environment';

const IMPORT = pathToFileURL(path.join(__dirname, 'wrong-clock.mjs')).href;

// Proves W8.
it.concurrent.each([
  ['ten minutes ahead', 600_000],
  ['ten minutes behind', -600_000],
])(
  'a worker whose clock is %s sends near the deadline, and no sentAt, first poll or freshness follows it',
  (_, skewMs) =>
    ProcessEnvironment.with({}, async (environment) => {
      await environment.startWorker({
        NODE_OPTIONS: `--import=${IMPORT}`,
        TEST_CLOCK_SKEW_MS: String(skewMs),
      });
      const startedAt = Date.now();
      const polling = { initial: '500ms', growth: 1, maximum: '5m', timerPolls: 1 } as const;
      const times = { polling, deadline: '9m', confirm: '3s', settle: '1s' } as const;
      const following = await environment.follow({}, times);
      const { status, followUp } = await following.result();
      const [sentAt, settledAt] = [followUp.sentAt, followUp.settledAt].map((at) => Date.parse(at ?? ''));
      expect(status).toBe('completed');
      expect(followUp.evidence).toBe('seen-active');
      expect(sentAt).toBeGreaterThanOrEqual(startedAt - 1_000);
      expect(sentAt).toBeLessThanOrEqual(settledAt ?? 0);
      const [post] = following.posts();
      expect((settledAt ?? 0) - Date.parse(post?.time ?? '')).toBeGreaterThanOrEqual(3_000);
      // Nor does a poll in its process end at once, or never: both would be told by their number.
      expect(followUp.polls).toBe(following.gets() - 1);
      expect(followUp.polls).toBeLessThan(12);
    }),
);
