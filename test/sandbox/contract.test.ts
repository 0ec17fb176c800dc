import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { type Sandbox, startSandbox } from '../../sandbox';
import { call, jobPath, read, send } from './requests';

const JSON_TYPE = { 'content-type': 'application/json' };

let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ turnMs: 60_000, messagesPerHour: null });
});

afterAll(async () => {
  await sandbox.close();
});

function post(body: string | Buffer, headers: Record<string, string> = JSON_TYPE, jobId = 'job-1') {
  return call(sandbox, `${jobPath(jobId)}/message`, { method: 'POST', headers, body });
}

describe('reading a job', () => {
  it('answers 200 with every field of the specification', async () => {
    const reply = await read(sandbox, 'job-2');
    expect(reply.status).toBe(200);
    expect(reply.headers['content-type']).toMatch(/^application\/json/);
    expect(reply.job()).toEqual({
      id: 'job-2',
      status: 'completed',
      source: { repository: 'example/handbook', ref: 'main' },
      model: 'sandbox-writer-1',
      prLink: `${sandbox.baseUrl}/pull/1`,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      archivedAt: null,
    });
  });

  it('shows when an archived job was archived', async () => {
    const job = (await read(sandbox, 'job-5')).job();
    expect(job.status).toBe('archived');
    expect(Date.parse(job.archivedAt ?? '')).not.toBeNaN();
  });

  it('is allowed to a key that may only read', async () => {
    expect((await read(sandbox, 'job-1', { key: sandbox.createKey('read-only') })).status).toBe(200);
  });
});

describe('a message', () => {
  it('is answered at once with the job, which is active and shows no link', async () => {
    sandbox.addJob({ id: 'with-link', pullRequest: true });
    const reply = await send(sandbox, 'with-link', 'Go on.');
    expect(reply.status).toBe(200);
    expect(reply.job()).toMatchObject({ id: 'with-link', status: 'active', prLink: null });
  });

  it('reaches a failed and an active job, and is refused by an archived one', async () => {
    expect((await send(sandbox, 'job-3', 'Try again.')).job().status).toBe('active');
    expect((await send(sandbox, 'job-4', 'And this.')).status).toBe(200);
    const archived = await send(sandbox, 'job-5', 'Wake up.');
    expect(archived.status).toBe(400);
    expect(archived.error()).toBe('the job is archived and takes no more messages');
  });

  it('may have the largest prompt that a follow-up can have, in its longest JSON form', async () => {
    const prompt = '\u0001'.repeat(256 * 1_024);
    expect((await send(sandbox, 'job-2', prompt)).status).toBe(200);
  });

  it.each([
    ['no JSON', '{"prompt":', /not JSON/],
    ['an array', '["prompt"]', /expected object, received array/],
    ['null', 'null', /expected object, received null/],
    ['no prompt', '{}', /prompt: .*received undefined/],
    ['a number as prompt', '{"prompt":1}', /prompt: .*expected string, received number/],
    ['an empty prompt', '{"prompt":""}', /prompt: .*>=1 character/],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), /UTF-8/],
    ['nothing', '', /not JSON/],
  ])('with %s is a 400 that says so', async (_, body, words) => {
    const reply = await post(body);
    expect(reply.status).toBe(400);
    expect(reply.error()).toMatch(words);
  });

  it.each([
    ['text/plain', 400],
    ['application/x-www-form-urlencoded', 400],
    ['application/jsonlines', 400],
    ['Application/JSON; charset=UTF-8', 200],
  ])('of content type %s is answered %i', async (type, status) => {
    expect((await post('{"prompt":"x"}', { 'content-type': type })).status).toBe(status);
  });

  it('without a content type is a 400', async () => {
    expect((await post('{"prompt":"x"}', {})).error()).toMatch(/content type must be application\/json/);
  });

  it('that is too large is a 413 that says so', async () => {
    const reply = await post(Buffer.alloc(2 * 2 ** 20 + 1, 0x20));
    expect(reply.status).toBe(413);
    expect(reply.error()).toMatch(/larger than 2097152 bytes/);
  });

  it('that is too large is answered even to a caller who sends everything before it reads', async () => {
    const body = Buffer.alloc(16 * 2 ** 20, 0x20);
    const { hostname, port } = new URL(sandbox.baseUrl);
    const socket = connect(Number(port), hostname);
    try {
      await once(socket, 'connect');
      const head = [
        `POST ${jobPath('job-1')}/message HTTP/1.1`,
        `Host: ${hostname}`,
        `Authorization: Bearer ${sandbox.apiKey}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ];
      socket.write(head.join('\r\n') + '\r\n\r\n');
      await promisify((done: (error?: Error | null) => void) => socket.write(body, done))();
      const [answer] = (await once(socket, 'data')) as [Buffer];
      expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 413 /);
    } finally {
      socket.destroy();
    }
  });
});

describe('authentication', () => {
  it.each([
    ['no header', null, 'no API key'],
    ['a wrong key', 'sandbox_wrong', 'unknown'],
    ['an empty key', '', 'no API key'],
  ])('%s is a 401 on both operations', async (_, key, words) => {
    for (const reply of [await read(sandbox, 'job-1', { key }), await send(sandbox, 'job-1', 'x', { key })]) {
      expect(reply.status).toBe(401);
      expect(reply.error()).toContain(words);
    }
  });

  it('another scheme than Bearer is a 401', async () => {
    const headers = { authorization: `Basic ${sandbox.apiKey}` };
    expect((await read(sandbox, 'job-1', { key: null, headers })).status).toBe(401);
  });

  it('a key that may only read is a 403 on a message, and nothing is processed', async () => {
    const job = sandbox.addJob();
    const reply = await send(sandbox, job.jobId, 'x', { key: sandbox.createKey('read-only') });
    expect(reply.status).toBe(403);
    expect(sandbox.job(job).messages).toBe(0);
  });

  it('an expired key is a 401 and a new one works', async () => {
    const own = await startSandbox();
    try {
      own.expireKeys();
      expect((await read(own, 'job-1')).error()).toBe('the API key is expired');
      expect((await read(own, 'job-1', { key: own.createKey() })).status).toBe(200);
    } finally {
      await own.close();
    }
  });
});

describe('paths', () => {
  it.each([
    '/',
    '/v2/agent/docs/job/',
    '/v2/agent/docs/job/job-1/',
    '/v2/agent/docs/jobs/job-1',
    '/v1/agent/docs/job/job-1',
  ])('%s is a 404', async (path) => {
    expect((await call(sandbox, path)).status).toBe(404);
  });

  it('an unknown job, and a known job of another project, are a 404 with words', async () => {
    expect((await read(sandbox, 'nobody')).error()).toBe('job not found');
    expect((await call(sandbox, jobPath('job-1', 'other'))).status).toBe(404);
    expect((await send(sandbox, 'nobody', 'x')).status).toBe(404);
  });

  it.each([
    ['DELETE', '', 'GET'],
    ['POST', '', 'GET'],
    ['GET', '/message', 'POST'],
    ['PUT', '/message', 'POST'],
  ] as const)('%s …%s is a 405 that names what is allowed', async (method, tail, allowed) => {
    const reply = await call(sandbox, jobPath('job-1') + tail, { method });
    expect(reply.status).toBe(405);
    expect(reply.headers.allow).toBe(allowed);
  });

  it.each(['a/b', 'ü 漢字 🙂', '100%', 'a?b#c', '%2F', 'a+b'])('the id %j is decoded once', async (id) => {
    sandbox.addJob({ projectId: 'p/ä', id });
    const reply = await call(sandbox, jobPath(id, 'p/ä'));
    expect(reply.status).toBe(200);
    expect(reply.job().id).toBe(id);
  });

  it('an id that is no UTF-8 is a 404', async () => {
    const reply = await call(sandbox, '/v2/agent/docs/job/%ff');
    expect(reply.status).toBe(404);
    expect(reply.error()).toBe('no such path');
  });
});

describe('the limit', () => {
  it('counts messages per project and hour, tells how long to wait, and leaves reads alone', async () => {
    let now = Date.parse('2026-01-01T00:00:00Z');
    const limited = await startSandbox({ messagesPerHour: 2, now: () => now });
    limited.addJob({ projectId: 'other', id: 'job' });
    try {
      await send(limited, 'job-1', 'one');
      now += 600_000;
      await send(limited, 'job-1', 'two');
      const refused = await send(limited, 'job-2', 'three');
      expect(refused.status).toBe(429);
      expect(refused.headers['retry-after']).toBe('3000');
      expect((await read(limited, 'job-1')).status).toBe(200);
      const other = await call(limited, `${jobPath('job', 'other')}/message`, {
        method: 'POST',
        headers: JSON_TYPE,
        body: '{"prompt":"x"}',
      });
      expect(other.status).toBe(200);
      now += 3_000_000;
      expect((await send(limited, 'job-2', 'three')).status).toBe(200);
      expect((await send(limited, 'job-2', 'four')).headers['retry-after']).toBe('600');
    } finally {
      await limited.close();
    }
  });

  it('does not count what was refused for another reason', async () => {
    const limited = await startSandbox({ messagesPerHour: 1 });
    try {
      await send(limited, 'nobody', 'x');
      await send(limited, 'job-5', 'x');
      expect((await send(limited, 'job-1', 'x')).status).toBe(200);
      expect((await send(limited, 'job-1', 'x')).status).toBe(429);
    } finally {
      await limited.close();
    }
  });
});

describe('the link of a job', () => {
  it('opens, and says which job it is of', async () => {
    const { job } = sandbox.addJob({ id: 'linked', pullRequest: true });
    const page = await fetch(job.prLink ?? '');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(await page.text()).toMatch(/^Pull request \d+, opened by the job linked of the project docs\./);
  });

  it('is a 404 where there is no such pull request', async () => {
    expect((await call(sandbox, '/pull/999')).status).toBe(404);
  });
});
