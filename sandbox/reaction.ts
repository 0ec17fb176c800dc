import type { IncomingMessage, ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

/**
 * The reaction to a request on the connection: a response, a part of a response, or nothing. A reaction that closes or resets the
 * connection returns `closed` or `reset`.
 */
export type Reaction = (req: IncomingMessage, res: ServerResponse) => 'closed' | 'reset' | undefined;

const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonResponse(status: number, value: unknown, headers: Record<string, string> = {}): Reaction {
  const body = JSON.stringify(value) + '\n';
  return textResponse(status, body, { 'content-type': JSON_TYPE, 'cache-control': 'no-store', ...headers });
}

/** Responds with the error body of the contract. */
export function errorResponse(status: number, error: string, headers: Record<string, string> = {}): Reaction {
  return jsonResponse(status, { error }, headers);
}

/** The encodings of a response. Node 20 has no `zstd`, so such a response has the header and a body that is not encoded. */
export const ENCODINGS = ['gzip', 'deflate', 'br', 'zstd'] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Responds with a compressed JSON body. */
export function encodedJsonResponse(status: number, value: unknown, encoding: Encoding): Reaction {
  const encode = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: (body: Buffer) => body,
  }[encoding];
  const body = encode(Buffer.from(JSON.stringify(value)));
  return textResponse(status, body, { 'content-type': JSON_TYPE, 'content-encoding': encoding });
}

export function textResponse(
  status: number,
  body: string | Buffer,
  headers: Record<string, string>,
): Reaction {
  return (req, res) => {
    // If the request was not read to its end, its rest is still on the connection, so the connection can't be reused.
    const ending = req.complete ? {} : { connection: 'close' };
    res.writeHead(status, { ...headers, ...ending, 'content-length': Buffer.byteLength(body) });
    res.end(body);
    return undefined;
  };
}

/** Closes the connection without a response (FIN). */
export const closeConnection: Reaction = (req) => {
  req.socket.destroySoon();
  return 'closed';
};

/** Resets the connection without a response (RST). */
export const resetConnection: Reaction = (req) => {
  req.socket.resetAndDestroy();
  return 'reset';
};

/** Sends nothing, until the client disconnects. */
export const noResponse: Reaction = () => undefined;

/** Sends 200 with the length of a whole body, and the first half of this body. Then closes the connection. */
export const truncatedResponse: Reaction = (req, res) => {
  const half = '{"id":"';
  res.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': 2 * half.length });
  res.write(half, () => {
    req.socket.destroySoon();
  });
  return 'closed';
};
