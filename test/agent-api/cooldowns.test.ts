import { describe, expect, it } from '@jest/globals';
import { Cooldowns } from '../../src/agent-api/cooldowns';
import { ADDRESS, JOB, MESSAGE, WireTest } from './agent-api-under-test';
import { answer } from './misbehaving-server';

describe('a project that the service wants quiet', () => {
  const wire = new WireTest();

  // Proves A4.
  it.each([
    ['read', 429, { 'retry-after': '30' }, 'as the service asked'],
    ['read', 503, { 'retry-after': '30' }, 'as the service asked'],
    ['read', 429, {}, 'after 1 refusals (429) in a row'],
    ['send', 429, { 'retry-after': '3600' }, 'as the service asked'],
    ['send', 503, { 'retry-after': '3600' }, 'as the service asked'],
  ] as const)(
    'by a %s with %d %j gets no send, and is read on after a send',
    async (by, status, headers, why) => {
      wire.server.onRequest = answer(status, { error: 'slow down' }, headers);
      const client = wire.client();
      await (by === 'read' ? client.getJob(ADDRESS) : client.sendMessage(MESSAGE));
      wire.server.onRequest = answer(200, JOB);
      const quiet = { label: 'cooling down', message: expect.stringContaining(why) };
      expect(await client.sendMessage(MESSAGE)).toMatchObject({
        ...quiet,
        verdict: 'not-sent',
        answered: false,
      });
      // It would cost a request, and no POST could follow.
      expect(await client.getJob(ADDRESS, { before: 'send' })).toMatchObject(quiet);
      const read = { kind: 'job', job: JOB };
      expect(await client.getJob(ADDRESS)).toMatchObject(by === 'read' ? quiet : read);
      // Where somebody insists, and in another project.
      expect(await client.getJob(ADDRESS, { insist: true })).toEqual(read);
      expect(await client.getJob({ ...ADDRESS, projectId: 'other' })).toEqual(read);
      expect(wire.server.requests).toHaveLength(by === 'read' ? 3 : 4);
    },
  );
});

describe('cool-downs', () => {
  function atTime() {
    const clock = { now: 0 };
    const [now, random] = [() => clock.now, () => 0.5];
    const cooldowns = new Cooldowns(now, random);
    return { clock, cooldowns, left: () => cooldowns.of('read', 'docs')?.retryAfterMs };
  }

  it('end, and spread those who waited', () => {
    const { clock, cooldowns, left } = atTime();
    cooldowns.heard('read', 'docs', 429, 10_000);
    const leftAt = [0, 9_999, 10_000].map((now) => {
      clock.now = now;
      return left();
    });
    expect(leftAt).toEqual([10_500, 501, undefined]);
  });

  it('double without a named time, up to five minutes, until an answer comes', () => {
    const { clock, cooldowns, left } = atTime();
    const lengths = Array.from({ length: 8 }, () => {
      cooldowns.heard('read', 'docs', 429, undefined);
      // A refusal of a request that was under way says nothing new.
      cooldowns.heard('read', 'docs', 429, undefined);
      const length = (left() ?? 0) / 1.05;
      clock.now += length;
      return length / 1_000;
    });
    expect(lengths).toEqual([5, 10, 20, 40, 80, 160, 300, 300]);
    cooldowns.heard('read', 'docs', 200, undefined);
    cooldowns.heard('read', 'docs', 429, undefined);
    expect(left()).toBe(5_250);
  });

  it('of reads and of sends are told apart, and a send is held by the later of the two', () => {
    const { clock, cooldowns, left } = atTime();
    const ofSends = () => cooldowns.of('send', 'docs')?.retryAfterMs;
    cooldowns.heard('send', 'docs', 429, 10_000);
    cooldowns.heard('read', 'docs', 429, 60_000);
    expect([left(), ofSends()]).toEqual([63_000, 63_000]);
    clock.now = 60_000;
    // What a read is answered says nothing of sends.
    cooldowns.heard('send', 'docs', 429, undefined);
    clock.now += 5_000;
    cooldowns.heard('read', 'docs', 200, undefined);
    cooldowns.heard('send', 'docs', 429, undefined);
    expect([left(), ofSends()]).toEqual([undefined, 10_500]);
  });

  it('are bounded in time and number, and never shortened', () => {
    const { cooldowns, left } = atTime();
    cooldowns.heard('read', 'docs', 429, 1e12);
    cooldowns.heard('read', 'docs', 429, 1_000);
    cooldowns.heard('read', 'docs', 200, undefined);
    expect(left()).toBe(3_600_000 * 1.05);
    for (let n = 0; n < 1_000; n += 1) cooldowns.heard('read', `project-${n}`, 429, 1_000);
    expect(left()).toBeUndefined();
    expect(cooldowns.of('read', 'project-0')).not.toBeNull();
  });
});
