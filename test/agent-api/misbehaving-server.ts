import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TlsOptions } from 'node:tls';
import { listen } from '../temporal/grpc-server';

/** One request as it came over the wire, read whole. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Which connection it came on, from 1. */
  readonly connection: number;
}

export type OnRequest = (socket: Socket, request: ReceivedRequest) => void;

/** A server on 127.0.0.1 whose answers are written by hand, so that they can be broken anywhere, until the tests of a file are over. */
export class MisbehavingServer {
  connections = 0;
  /** On the connections that are closed. */
  bytesReceived = 0;
  readonly requests: ReceivedRequest[] = [];
  /** What it does with a request that it has read whole. */
  onRequest: OnRequest = () => undefined;
  /** What it does as a proxy that is asked for a tunnel. */
  onConnect: OnRequest = tunnel;
  private readonly open = new Map<Socket, number>();

  private constructor(
    readonly url: string,
    readonly host: string,
  ) {}

  /** Starts a server on a free port; with a certificate it speaks TLS. */
  static async start(certificate?: TlsOptions): Promise<MisbehavingServer> {
    const [server, scheme] =
      certificate === undefined ? [createServer(), 'http'] : [createTlsServer(certificate), 'https'];
    const host = await listen(server);
    const made = new MisbehavingServer(`${scheme}://${host}`, host);
    server.on('connection', (socket: Socket) => made.remember(socket, (made.connections += 1)));
    server.on('secureConnection', (socket: Socket) => made.remember(socket, made.connections));
    server.on('request', (request) => void made.read(request));
    server.on('connect', (request, socket: Socket) => {
      // An HTTP server leaves it half open otherwise.
      socket.on('end', () => socket.end());
      made.onConnect(socket, made.received(request, Buffer.alloc(0)));
    });
    return made;
  }

  /** Resolves when every connection that was ever made is closed on the server's side too. */
  async waitUntilAllClosed(): Promise<void> {
    const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));
    await Promise.all([...this.open.keys()].map(closed));
  }

  private remember(socket: Socket, connection: number): void {
    this.open.set(socket, connection);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.bytesReceived += socket.bytesRead;
      this.open.delete(socket);
    });
  }

  private async read(request: IncomingMessage): Promise<void> {
    const body = await buffer(request).catch(() => null);
    if (body !== null) this.onRequest(request.socket, this.received(request, body));
  }

  private received({ method = '', url = '', headers, socket }: IncomingMessage, body: Buffer) {
    const request = { method, path: url, headers, body, connection: this.open.get(socket) ?? 0 };
    this.requests.push(request);
    return request;
  }
}

/** Hands everything on, as a proxy does after CONNECT. */
function tunnel(socket: Socket, { path }: ReceivedRequest): void {
  const { hostname, port } = new URL(`tcp://${path}`);
  const upstream = connect(Number(port), hostname, () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    socket.pipe(upstream).pipe(socket);
  });
  upstream.on('error', () => undefined).on('close', () => socket.destroy());
  socket.on('close', () => upstream.destroy());
}

/** Answers correctly, and closes the connection where the request asked for it. */
export function respondWith(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): OnRequest {
  return (socket, request) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const head = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      ...headers,
    };
    socket.write(httpHead(status, head) + text);
    if (request.headers.connection === 'close') socket.end();
  };
}

/** The status line and the headers, up to the empty line. */
export function httpHead(status: number, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n`;
}
