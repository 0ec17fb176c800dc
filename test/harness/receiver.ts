import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import type { Notice } from '../../src/core/activities';

/** One POST: its verified body, its `webhook-id`, and how it is answered. */
export interface Received {
  readonly id: string;
  readonly notice: Notice;
  readonly response: ServerResponse;
}

/**
 * Somebody's receiver of notices, with the JavaScript library of Standard Webhooks, which throws where a signature is wrong.
 *
 * @param answer 204 by itself
 */
export async function startReceiver(
  secret: string,
  answer: (received: Received) => void = ({ response }) => response.writeHead(204).end(),
) {
  const webhook = new Webhook(secret);
  const all: Received[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const headers = request.headers as Record<string, string>;
      const notice = webhook.verify(await text(request), headers) as Notice;
      const received = { id: headers['webhook-id'] ?? '', notice, response };
      all.push(received);
      answer(received);
    })();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => server.close().closeAllConnections();
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/follow-ups`, all, close };
}
