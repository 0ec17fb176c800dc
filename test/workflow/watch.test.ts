import { describe, expect, it } from '@jest/globals';
import { sharedEnvironment } from '../harness/shared-environment';

const open = sharedEnvironment();

describe('a terminal status', () => {
  it.concurrent('that is stale after the send neither ends nor breaks the watch', async () => {
    const environment = await open();
    const job = environment.sandbox.addJob({
      projectId: 'stale',
      pullRequest: true,
      turn: { durationMs: 6_000 },
    });
    const { projectId, jobId } = job;
    // Its message does not show either that the turn has begun.
    environment.sandbox.setFault({ name: 'stale', projectId, jobId, parameters: { for: '1s' } });
    const following = await environment.send({ projectId, jobId, confirm: '10s' });
    const result = await following.result();
    expect(result.followUp).toMatchObject({
      evidence: 'seen-active',
      observed: { completed: expect.any(Number) },
    });
    expect(result.followUp.observed.completed).toBeGreaterThan(1);
  });

  it.concurrent('of a turn too short to be seen is believed once it has held for confirm', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { outcome: 'no-change' } }, { settle: '200ms' });
    environment.sandbox.setFault({ name: 'invisible-turn', ...following.key });
    const startedAt = Date.now();
    const result = await following.result();
    expect(result.followUp.evidence).toBe('confirmed');
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(1_500);
    expect(following.processed()).toBe(1);
  });

  it.concurrent('that is not believed yet says in its progress from when on an answer counts', async () => {
    const environment = await open();
    const following = await environment.follow({}, { confirm: '4s' });
    environment.sandbox.setFault({ name: 'invisible-turn', ...following.key });
    const waiting = /^completed; an answer counts from \S+Z on$/;
    await following.progressWhen(({ lastAnswer }) => waiting.test(lastAnswer ?? ''));
    await following.progressWhen(({ lastAnswer }) =>
      /^completed; must hold until \S+Z$/.test(lastAnswer ?? ''),
    );
    const { followUp } = await following.result();
    const settledMs = Date.parse(followUp.settledAt ?? '') - Date.parse(followUp.sentAt ?? '');
    expect(settledMs).toBeGreaterThanOrEqual(8_000);
  });

  it.concurrent('of a turn too short to be seen is believed as changed when its link is new', async () => {
    const environment = await open();
    const following = await environment.follow({ pullRequest: true, turn: { outcome: 'new-pull-request' } });
    environment.sandbox.setFault({ name: 'invisible-turn', ...following.key });
    expect((await following.result()).followUp.evidence).toBe('job-changed');
  });

  it.concurrent('that changed from failed to completed is believed at once', async () => {
    const environment = await open();
    const following = await environment.follow({ status: 'failed' }, { confirm: '15s' });
    environment.sandbox.setFault({ name: 'invisible-turn', ...following.key });
    const result = await following.result();
    expect(result).toMatchObject({ status: 'completed', followUp: { evidence: 'status-changed' } });
  });

  it.concurrent(
    'of a job that was active before the send must hold, since it may be the earlier turn’s',
    async () => {
      const environment = await open();
      const following = await environment.follow({
        status: 'active',
        // Long enough to be met by the baseline on a busy machine.
        turns: [{ durationMs: 6_000 }, { durationMs: 800 }],
        whileActive: 'queue',
        queueGapMs: 600,
      });
      const result = await following.result();
      expect(result.followUp).toMatchObject({ baseline: { status: 'active' }, evidence: 'job-changed' });
      expect(environment.sandbox.job(following.key).turns.map((turn) => turn.state)).toEqual([
        'ended',
        'ended',
      ]);
    },
  );

  it.concurrent('failed is a result and no error', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { outcome: 'failed', reads: 2 } });
    expect(await following.result()).toMatchObject({
      status: 'failed',
      prLink: null,
      followUp: { evidence: 'seen-active' },
    });
  });
});

describe('the link of a completed job', () => {
  it.concurrent('is waited for when it comes late', async () => {
    const environment = await open();
    const following = await environment.follow({}, { settle: '10s' });
    environment.sandbox.setFault({ name: 'late-link', ...following.key, parameters: { for: '1s' } });
    expect((await following.result()).prLink).toContain('/pull/');
  });

  it.concurrent('is null when it has not come within settle', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { outcome: 'no-change' } });
    const result = await following.result();
    expect(result).toMatchObject({ status: 'completed', prLink: null });
    expect(result.followUp.observed.completed).toBeGreaterThan(1);
  });
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
    const environment = await open();
    const following = await environment.follow();
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' });
    environment.sandbox.setFault({ name, ...following.key, operation: 'get', times: 2 });
    const result = await following.result();
    expect(result.status).toBe('completed');
    expect(Object.keys(result.followUp.observed)).toContain(label);
  });

  it.concurrent('shows a refused key as its phase, and heals', async () => {
    const environment = await open();
    const following = await environment.follow({ turn: { durationMs: 500 } });
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' });
    environment.sandbox.setFault({ name: 'unauthorized', ...following.key, operation: 'get' });
    await following.progressWhen(({ phase }) => phase === 'unauthorized');
    environment.sandbox.clearFaults(following.key);
    expect((await following.result()).status).toBe('completed');
  });

  it.concurrent(
    'of five 404s in a row that span confirm ends as JobNotFound, and says that the message was accepted',
    async () => {
      const environment = await open();
      const following = await environment.follow();
      await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' });
      environment.sandbox.setFault({ name: 'not-found', ...following.key, operation: 'get' });
      const { type, message, details } = await following.failure();
      expect({ type, httpStatus: details.httpStatus }).toEqual({ type: 'JobNotFound', httpStatus: 404 });
      expect(message).toContain('The message was accepted.');
      expect(details.job).toMatchObject({ id: following.key.jobId });
      expect(details.followUp.observed['http 404']).toBeGreaterThanOrEqual(5);
    },
  );

  it.concurrent('of four 404s in a row is a delay', async () => {
    const environment = await open();
    const following = await environment.follow();
    await environment.sandbox.journal.waitFor({ ...following.key, operation: 'message' });
    environment.sandbox.setFault({ name: 'not-found', ...following.key, operation: 'get', times: 4 });
    const result = await following.result();
    expect(result.followUp.observed).toMatchObject({ 'http 404': 4 });
  });

  it.concurrent(
    'of a status that nobody knows ends with the deadline, the last job and the counts',
    async () => {
      const environment = await open();
      const following = await environment.follow({ turn: { durationMs: null } }, { deadline: '6s' });
      environment.sandbox.setFault({
        name: 'unknown-status',
        ...following.key,
        operation: 'get',
        parameters: { word: 'pondering', 'instead-of': 'active' },
      });
      const { type, message, details } = await following.failure();
      expect(type).toBe('DeadlineExceeded');
      expect(message).toContain('pondering');
      expect(details).toMatchObject({
        job: { status: 'pondering' },
        followUp: { delivery: { verdict: 'accepted' }, observed: { pondering: expect.any(Number) } },
      });
    },
  );
});
