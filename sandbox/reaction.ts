import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * What the sandbox does with a request on the wire: an answer, or less than that. It returns how it cut the connection
 * off, where it did.
 */
export type Reaction = (req: IncomingMessage, res: ServerResponse) => 'closed' | 'reset' | undefined;

const JSON_TYPE = 'application/json; charset=utf-8';

export function jsonResponse(status: number, value: unknown, headers: Record<string, string> = {}): Reaction {
  const body = JSON.stringify(value) + '\n';
  return textResponse(status, body, { 'content-type': JSON_TYPE, 'cache-control': 'no-store', ...headers });
}

/** The error body of the contract. */
export function errorResponse(status: number, error: string, headers: Record<string, string> = {}): Reaction {
  return jsonResponse(status, { error }, headers);
}

export function textResponse(status: number, body: string, headers: Record<string, string>): Reaction {
  return (req, res) => {
    // The rest of a request that was not read to its end is still on the connection, which can't be used again.
    const ending = req.complete ? {} : { connection: 'close' };
    res.writeHead(status, { ...headers, ...ending, 'content-length': Buffer.byteLength(body) });
    res.end(body);
    return undefined;
  };
}

/** The connection ends without an answer (FIN). */
export const closeConnection: Reaction = (req) => {
  req.socket.destroySoon();
  return 'closed';
};

/** The connection is reset without an answer (RST). */
export const resetConnection: Reaction = (req) => {
  req.socket.resetAndDestroy();
  return 'reset';
};

/** Nothing, until the caller gives up. */
export const noResponse: Reaction = () => undefined;

/** 200 and the first half of a body whose whole length was announced; then the connection ends. */
export const truncatedResponse: Reaction = (req, res) => {
  const half = '{"id":"';
  res.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': 2 * half.length });
  res.write(half, () => {
    req.socket.destroySoon();
  });
  return 'closed';
};
