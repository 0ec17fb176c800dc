import { expect, it } from '@jest/globals';
import { Cooldowns } from '../../src/agent-api/cooldowns';
import { ADDRESS, JOB, MESSAGE, WireTest } from './agent-api-under-test';
import { answer } from './misbehaving-server';

const wire = new WireTest();

// Proves A4.
it.each([
  ['read', 503, { 'retry-after': '30' }, 'as the service asked'],
  ['read', 429, {}, 'after 1 refusals (429) in a row'],
  ['send', 429, { 'retry-after': '3600' }, 'as the service asked'],
] as const)(
  'a project that a %s with %d %j wants quiet gets no send, and is read on after a send',
  async (by, status, headers, why) => {
    wire.server.onRequest = answer(status, { error: 'slow down' }, headers);
    const client = wire.client();
    await (by === 'read' ? client.getJob(ADDRESS) : client.sendMessage(MESSAGE));
    wire.server.onRequest = answer(200, JOB);
    const quiet = { label: 'cooling down', message: expect.stringContaining(why) };
    const notSent = { ...quiet, verdict: 'not-sent', answered: false };
    expect(await client.sendMessage(MESSAGE)).toMatchObject(notSent);
    // It would cost a request, and no POST could follow.
    expect(await client.getJob(ADDRESS, { before: 'send' })).toMatchObject(quiet);
    const read = { kind: 'job', job: JOB };
    expect(await client.getJob(ADDRESS)).toMatchObject(by === 'read' ? quiet : read);
    // Where somebody insists, and in another project.
    expect(await client.getJob(ADDRESS, { insist: true })).toEqual(read);
    expect(await client.getJob({ ...ADDRESS, projectId: 'other' })).toEqual(read);
  },
);

// The simulation has those of reads beside those of sends.
it('a cool-down doubles without a named time, up to five minutes; is bounded in time and number, and never shortened', () => {
  let now = 0;
  const cooldowns = new Cooldowns(
    () => now,
    () => 0.5,
  );
  const left = () => cooldowns.of('read', 'docs')?.retryAfterMs;
  const heard = (status: number, waitMs?: number) => cooldowns.heard('read', 'docs', status, waitMs);
  const lengths = Array.from({ length: 8 }, () => {
    heard(429);
    // A refusal of a request that was under way says nothing new.
    heard(429);
    // Those who waited are spread.
    const length = (left() ?? 0) / 1.05;
    now += length;
    return length / 1_000;
  });
  expect([...lengths, left()]).toEqual([5, 10, 20, 40, 80, 160, 300, 300, undefined]);
  heard(200);
  heard(429);
  expect(left()).toBe(5_250);
  heard(429, 1e12);
  heard(429, 1_000);
  heard(200);
  expect(left()).toBe(3_600_000 * 1.05);
  for (let n = 0; n < 1_000; n += 1) cooldowns.heard('read', `project-${n}`, 429, 1_000);
  expect(left()).toBeUndefined();
  expect(cooldowns.of('read', 'project-0')).not.toBeNull();
});
