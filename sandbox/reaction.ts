import type { IncomingMessage, ServerResponse } from 'node:http';

export interface Answer {
  readonly kind: 'answer';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What the sandbox does with a request, as seen on the wire. */
export type Reaction =
  | Answer
  /** The connection ends without an answer (FIN). */
  | { readonly kind: 'close' }
  /** The connection is reset without an answer (RST). */
  | { readonly kind: 'reset' }
  /** Nothing, until the caller gives up. */
  | { readonly kind: 'silence' }
  /** 200, then white space for ever: valid JSON so far, and never the end of it. */
  | { readonly kind: 'drip'; readonly everyMs: number }
  /** 200 and a job with so many bytes of padding. */
  | { readonly kind: 'huge'; readonly bytes: number }
  /** 200 and the first half of a body whose whole length was announced; then the connection ends. */
  | { readonly kind: 'truncated' };

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' };

export function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): Answer {
  return {
    kind: 'answer',
    status,
    headers: { ...JSON_HEADERS, ...headers },
    body: JSON.stringify(value) + '\n',
  };
}

/** The error body of the contract. */
export function errorAnswer(status: number, error: string, headers: Record<string, string> = {}): Answer {
  return jsonAnswer(status, { error }, headers);
}

export function htmlAnswer(status: number, body: string, headers: Record<string, string> = {}): Answer {
  return {
    kind: 'answer',
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', ...headers },
    body,
  };
}

/** How a request can end without an answer of ours being finished. */
export type CutOff = 'closed' | 'reset';

/** Does to the connection what the reaction says, and tells whether it cut the exchange off. */
export function perform(reaction: Reaction, req: IncomingMessage, res: ServerResponse): CutOff | undefined {
  switch (reaction.kind) {
    case 'answer':
      sendAnswer(reaction, req, res);
      return undefined;
    case 'close':
      req.socket.destroySoon();
      return 'closed';
    case 'reset':
      req.socket.resetAndDestroy();
      return 'reset';
    case 'silence':
      return undefined;
    case 'drip':
      drip(reaction.everyMs, res);
      return undefined;
    case 'huge':
      sendHuge(reaction.bytes, res);
      return undefined;
    case 'truncated': {
      const body = '{"id":"';
      res.writeHead(200, { ...JSON_HEADERS, 'content-length': 2 * body.length });
      res.write(body, () => {
        req.socket.destroySoon();
      });
      return 'closed';
    }
  }
}

function sendAnswer(answer: Answer, req: IncomingMessage, res: ServerResponse): void {
  // An answer to a request that was not read to its end leaves the rest on the connection, so that can't be used again.
  const ending = req.complete ? {} : { connection: 'close' };
  res.writeHead(answer.status, {
    ...answer.headers,
    ...ending,
    'content-length': Buffer.byteLength(answer.body),
  });
  res.end(answer.body);
}

function drip(everyMs: number, res: ServerResponse): void {
  res.writeHead(200, JSON_HEADERS);
  res.write(' ');
  const timer = setInterval(() => res.write(' '), everyMs);
  res.once('close', () => {
    clearInterval(timer);
  });
}

/** Bytes written at a time: with 64 KiB the sandbox never holds more than a piece, whatever the size asked for. */
const PIECE_BYTES = 64 * 1_024;

function sendHuge(bytes: number, res: ServerResponse): void {
  res.writeHead(200, JSON_HEADERS);
  res.write('{"id":"huge","status":"active","padding":"');
  let left = bytes;
  const writeOn = (): void => {
    while (left > 0 && !res.destroyed) {
      const piece = Math.min(left, PIECE_BYTES);
      left -= piece;
      if (!res.write('x'.repeat(piece))) {
        res.once('drain', writeOn);
        return;
      }
    }
    res.end('"}\n');
  };
  writeOn();
}
