import { describe, expect, it } from '@jest/globals';
import { ENDLESS } from '../../harness/following';
import { sharedEnvironment } from '../../harness/shared-environment';

const { follow } = sharedEnvironment();

const INVISIBLE = { name: 'invisible-turn' } as const;
const NO_CHANGE = { turn: { outcome: 'no-change' } } as const;

describe('a terminal status', () => {
  it.concurrent('that is stale after the send neither ends nor breaks the watch', async () => {
    const job = { pullRequest: true, turn: { durationMs: 6_000 } };
    // Its message does not show either that the turn has begun.
    const following = await follow(job, { confirm: '10s' }, { name: 'stale', parameters: { for: '1s' } });
    const { followUp } = await following.result();
    expect(followUp.evidence).toBe('seen-active');
    expect(followUp.observed.completed).toBeGreaterThan(1);
  });

  it.concurrent('of a turn too short to be seen is believed once it has held for confirm', async () => {
    const following = await follow(NO_CHANGE, { confirm: '4s', settle: '200ms' }, INVISIBLE);
    for (const shown of [/^completed; an answer counts from \S+Z on$/, /^completed; must hold until \S+Z$/])
      await following.progressWhen(({ lastAnswer }) => shown.test(lastAnswer ?? ''));
    const { followUp } = await following.result();
    expect(followUp.evidence).toBe('confirmed');
    const settledMs = Date.parse(followUp.settledAt ?? '') - Date.parse(followUp.sentAt ?? '');
    expect(settledMs).toBeGreaterThanOrEqual(8_000);
    expect(following.processed()).toEqual([true]);
  });

  it.concurrent('of a job that was active before must hold: it may be the earlier turn’s', async () => {
    // The first turn is long enough to be met by the baseline on a busy machine.
    const turns = [{ durationMs: 6_000 }, { durationMs: 800 }];
    const job = { status: 'active', turns, whileActive: 'queue', queueGapMs: 600 } as const;
    const following = await follow(job);
    const { followUp } = await following.result();
    expect(followUp).toMatchObject({ baseline: { status: 'active' }, evidence: 'job-changed' });
    const told = following.report().turns;
    expect(told).toMatchObject([{ state: 'ended' }, { state: 'ended' }]);
  });
});

it.concurrent('the link of a completed job is waited for when it comes late', async () => {
  const following = await follow({}, { settle: '10s' }, { name: 'late-link', parameters: { for: '1s' } });
  expect((await following.result()).prLink).toContain('/pull/');
});

describe('trouble with polls', () => {
  it.concurrent.each([
    ['http-503', 'http 503'],
    ['http-429', 'http 429'],
    ['unauthorized', 'http 401'],
    ['html', 'not a job'],
    ['another-job', 'another job'],
    ['reset', 'ECONNRESET'],
    ['hang', 'timeout'],
  ])('%s is a delay, counted as %s, and never the job’s failure', async (name, label) => {
    // The look before the send is good.
    const following = await follow({}, {}, { name, operation: 'get', skip: 1, times: 2 });
    const { status, followUp } = await following.result();
    expect(status).toBe('completed');
    expect(Object.keys(followUp.observed)).toContain(label);
  });

  it.concurrent('of five 404s in a row that span confirm ends as JobNotFound', async () => {
    const following = await follow({}, {}, { name: 'not-found', operation: 'get', skip: 1 });
    const { type, message, details } = await following.failure();
    expect({ type, httpStatus: details.httpStatus }).toEqual({ type: 'JobNotFound', httpStatus: 404 });
    expect(message).toContain('The message was accepted.');
    expect(details.job).toMatchObject({ id: following.key.jobId });
    expect(details.followUp.observed['http 404']).toBeGreaterThanOrEqual(5);
  });

  it.concurrent('of a status that nobody knows ends with the deadline and the last job', async () => {
    const parameters = { word: 'pondering', 'instead-of': 'active' };
    const fault = { name: 'unknown-status', operation: 'get', parameters } as const;
    const { type, message, details } = await (await follow(ENDLESS, { deadline: '6s' }, fault)).failure();
    expect(type).toBe('DeadlineExceeded');
    expect(message).toContain('pondering');
    expect(details).toMatchObject({
      job: { status: 'pondering' },
      followUp: { delivery: { verdict: 'accepted' }, observed: { pondering: expect.any(Number) } },
    });
  });
});
