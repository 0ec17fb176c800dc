import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { Webhook } from 'standardwebhooks';
import { checkNotifyOptions, createPostNotification } from '../../src/activities/post-notification';
import type { Notification } from '../../src/contract/activities';
import { resolveTo } from '../agent-api/resolve-to';

const SECRET = `whsec_${Buffer.alloc(24, 'a').toString('base64')}`;
const secrets = { current: () => Promise.resolve(SECRET) };
const NOTIFICATION: Notification = {
  type: 'follow-up.ended',
  timestamp: '2026-11-25T14:24:33.540Z',
  data: { workflowId: 'w', runId: 'run-1', outcome: 'completed', message: null },
};

const received: { readonly path: string; readonly headers: Record<string, string>; readonly body: string }[] =
  [];
const server = createServer((request, response) => {
  void text(request).then((body) => {
    received.push({ path: request.url ?? '', headers: request.headers as Record<string, string>, body });
    response.writeHead(204).end();
  });
});
let origin = '';
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close().closeAllConnections();
});
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Sets the clock of this process, and nothing else. */
function setClock(now: number): void {
  jest.useFakeTimers({
    now,
    doNotFake: [
      ...(['hrtime', 'performance', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'] as const),
      ...(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const),
    ],
  });
}

/** Makes one attempt to post the notification. @param scheduledAt when the Temporal server scheduled the attempt */
async function post(url: string, scheduledAt = Date.now(), firstScheduledAt = scheduledAt): Promise<void> {
  const environment = new MockActivityEnvironment({
    workflowExecution: { workflowId: 'follow-up-notification-1', runId: 'run' },
    scheduledTimestampMs: firstScheduledAt,
    currentAttemptScheduledTimestampMs: scheduledAt,
  });
  await environment.run(createPostNotification({ url, secrets }), NOTIFICATION);
}

const MINUTE_MS = 60_000;

// Proves W8.
it.each([10, -10, 525_600])(
  'a receiver accepts a notification of a worker whose clock is %i minutes off, in a first attempt and in a retry hours later',
  async (minutes) => {
    const now = Date.now();
    setClock(now + minutes * MINUTE_MS);
    await post(`${origin}/hook?token=t`, now);
    await post(`${origin}/hook?token=t`, now, now - 180 * MINUTE_MS);
    // The receiver's clock is correct.
    jest.useRealTimers();
    const both = received.splice(0);
    expect(both.map(({ path }) => path)).toEqual(['/hook?token=t', '/hook?token=t']);
    for (const { headers, body } of both) {
      expect(new Webhook(SECRET).verify(body, headers)).toEqual(NOTIFICATION);
      expect(headers['webhook-id']).toBe('follow-up-notification-1');
    }
  },
);

// Proves W8.
it('a receiver rejects the first attempt of a notification that waited an hour for a worker, and accepts the next attempt', async () => {
  const now = Date.now();
  await post(origin, now - 60 * MINUTE_MS);
  await post(origin, now, now - 60 * MINUTE_MS);
  const [first, next] = received.splice(0);
  const verify = (request: typeof first) =>
    new Webhook(SECRET).verify(request?.body ?? '', request?.headers ?? {});
  expect(() => verify(first)).toThrow('Message timestamp too old');
  expect(verify(next)).toEqual(NOTIFICATION);
});

it('the second address of a receiver is used if the first one can’t be reached', async () => {
  resolveTo('2001:db8::1', '127.0.0.1');
  await post(`http://receiver.example:${new URL(origin).port}/`);
  expect(received.splice(0)).toHaveLength(1);
});

it('the failure of a connection that the receiver closes names its cause, and not the URL', async () => {
  const closing = createServer((request) => request.resume().on('end', () => request.socket.destroy()));
  await once(closing.listen(0, '127.0.0.1'), 'listening');
  const { port } = closing.address() as AddressInfo;
  const message = 'the receiver did not respond (connection_closed)';
  await expect(post(`http://127.0.0.1:${port}/?token=t`)).rejects.toMatchObject({
    type: 'NotificationFailed',
    message,
  });
  closing.close();
});

it.each([
  ['ftp://hooks.example.com', 'notify.url must be the http:// or https:// URL of a receiver'],
  [
    'https://user:password@hooks.example.com',
    'notify.url must have no user name and no password; the receiver checks the signature',
  ],
])('the options of notifications are rejected if the URL is %s', async (url, message) => {
  await expect(checkNotifyOptions({ url, secrets })).rejects.toThrow(new TypeError(message));
});
