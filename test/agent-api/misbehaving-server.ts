import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TlsOptions } from 'node:tls';
import { listen } from '../temporal/grpc-server';

/** A request that the server has read completely. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The number of the connection on which the request arrived. The first connection has the number 1. */
  readonly connection: number;
}

export type OnRequest = (socket: Socket, request: ReceivedRequest) => void;

/**
 * A server on 127.0.0.1 whose tests write the responses as raw bytes, so that a response can be invalid in any place. The server
 * closes after the last test of the file.
 */
export class MisbehavingServer {
  connections = 0;
  /** The number of bytes that the server received on connections that are closed now. */
  bytesReceived = 0;
  readonly requests: ReceivedRequest[] = [];
  /** Responds to each request after the server has read it completely. By default, the server does not respond. */
  onRequest: OnRequest = () => undefined;
  /** Responds to each CONNECT request. By default, the server is a proxy that opens a tunnel. */
  onConnect: OnRequest = tunnel;
  private readonly open = new Map<Socket, number>();

  private constructor(
    readonly url: string,
    readonly host: string,
  ) {}

  /** Starts a server on a free port. If a certificate is given, the server uses TLS. */
  static async start(certificate?: TlsOptions): Promise<MisbehavingServer> {
    const [server, scheme] =
      certificate === undefined ? [createServer(), 'http'] : [createTlsServer(certificate), 'https'];
    const host = await listen(server);
    const made = new MisbehavingServer(`${scheme}://${host}`, host);
    server.on('connection', (socket: Socket) => made.remember(socket, (made.connections += 1)));
    server.on('secureConnection', (socket: Socket) => made.remember(socket, made.connections));
    server.on('request', (request) => void made.read(request));
    server.on('connect', (request, socket: Socket) => {
      // Without this line, the HTTP server would leave the connection half open.
      socket.on('end', () => socket.end());
      made.onConnect(socket, made.received(request, Buffer.alloc(0)));
    });
    return made;
  }

  /** Resolves when every connection is also closed on the server's side. */
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

/** Opens a connection to the requested host and forwards all bytes, as a proxy does after CONNECT. */
function tunnel(socket: Socket, { path }: ReceivedRequest): void {
  const { hostname, port } = new URL(`tcp://${path}`);
  const upstream = connect(Number(port), hostname, () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    socket.pipe(upstream).pipe(socket);
  });
  upstream.on('error', () => undefined).on('close', () => socket.destroy());
  socket.on('close', () => upstream.destroy());
}

/** Returns a correct HTTP response, and closes the connection if the request has `connection: close`. */
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

/** Returns the status line and the headers of a response, including the empty line. */
export function httpHead(status: number, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join('')}\r\n`;
}
