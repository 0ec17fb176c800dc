import { describe, expect, it } from '@jest/globals';
import { Cooldowns } from '../../src/agent-api/cooldowns';
import { ADDRESS, JOB, MESSAGE, WireTest } from './agent-api-under-test';
import { answer } from './misbehaving-server';

describe('a project that the service wants quiet', () => {
  const wire = new WireTest();

  it.each([
    [429, { 'retry-after': '30' }, 'as the service asked'],
    [503, { 'retry-after': '30' }, 'as the service asked'],
    [429, {}, 'after 1 refusals (429) in a row'],
  ])('after %d %j is not asked again, neither by a read nor by a send', async (status, headers, why) => {
    wire.server.onRequest = answer(status, { error: 'slow down' }, headers);
    const client = wire.client();
    await client.getJob(ADDRESS);
    const quiet = { label: 'cooling down', message: expect.stringContaining(why) };
    expect(await client.getJob({ ...ADDRESS, jobId: 'job-2' })).toMatchObject(quiet);
    const notSent = { ...quiet, verdict: 'not-sent', answered: false };
    expect(await client.sendMessage(MESSAGE)).toMatchObject(notSent);
    expect(wire.server.requests).toHaveLength(1);
    await client.getJob({ ...ADDRESS, projectId: 'other' });
    expect(wire.server.requests).toHaveLength(2);
  });

  it('is asked again after a 503 that names no time', async () => {
    wire.server.onRequest = answer(503, { error: 'restarting' });
    const client = wire.client();
    await client.getJob(ADDRESS);
    wire.server.onRequest = answer(200, JOB);
    expect(await client.getJob(ADDRESS)).toMatchObject({ kind: 'job' });
  });
});

describe('cool-downs', () => {
  function atTime() {
    const clock = { now: 0 };
    const [now, random] = [() => clock.now, () => 0.5];
    const cooldowns = new Cooldowns(now, random);
    return { clock, cooldowns, left: () => cooldowns.of('docs')?.retryAfterMs };
  }

  it('end, and spread those who waited', () => {
    const { clock, cooldowns, left } = atTime();
    cooldowns.heard('docs', 429, 10_000);
    expect(left()).toBe(10_500);
    clock.now = 9_999;
    expect(left()).toBe(501);
    clock.now = 10_000;
    expect(left()).toBeUndefined();
  });

  it('double without a named time, up to five minutes, until an answer comes', () => {
    const { clock, cooldowns, left } = atTime();
    const lengths = Array.from({ length: 8 }, () => {
      cooldowns.heard('docs', 429, undefined);
      // A refusal of a request that was under way says nothing new.
      cooldowns.heard('docs', 429, undefined);
      const length = (left() ?? 0) / 1.05;
      clock.now += length;
      return length / 1_000;
    });
    expect(lengths).toEqual([5, 10, 20, 40, 80, 160, 300, 300]);
    cooldowns.heard('docs', 200, undefined);
    cooldowns.heard('docs', 429, undefined);
    expect(left()).toBe(5_250);
  });

  it('are bounded in time and number, and never shortened', () => {
    const { cooldowns, left } = atTime();
    cooldowns.heard('docs', 429, 1e12);
    cooldowns.heard('docs', 429, 1_000);
    cooldowns.heard('docs', 200, undefined);
    expect(left()).toBe(3_600_000 * 1.05);
    for (let n = 0; n < 1_000; n += 1) cooldowns.heard(`project-${n}`, 429, 1_000);
    expect(left()).toBeUndefined();
    expect(cooldowns.of('project-0')).not.toBeNull();
  });
});
