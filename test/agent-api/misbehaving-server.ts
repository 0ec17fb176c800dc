import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import type { SelfSignedCertificate } from './self-signed-certificate';

/** One request as it came over the wire, read whole. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Which connection it came on, from 1. */
  readonly connection: number;
}

/** What the server does with a request that it has read whole. */
export type OnRequest = (socket: Socket, request: ReceivedRequest) => void;

/** A server on 127.0.0.1 that speaks HTTP by hand, so that it can break it anywhere, and counts what really arrived. */
export class MisbehavingServer {
  connections = 0;
  bytesReceived = 0;
  readonly requests: ReceivedRequest[] = [];
  onRequest: OnRequest = () => undefined;
  /** What it does with a connection before anything is read; true when that takes the connection over. */
  onConnection: (socket: Socket) => boolean = () => false;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    private readonly scheme: 'http' | 'https',
  ) {
    // Every TCP connection counts, also one whose TLS handshake fails.
    server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.remember(socket);
    });
    server.on(scheme === 'http' ? 'connection' : 'secureConnection', (socket: Socket) => {
      this.accept(socket);
    });
    server.on('tlsClientError', () => undefined);
  }

  /** Starts a server on a free port; with a certificate it speaks TLS. */
  static async start(
    certificate?: SelfSignedCertificate & Pick<TlsOptions, 'requestCert'>,
  ): Promise<MisbehavingServer> {
    const server = certificate === undefined ? createServer() : createTlsServer(certificate);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return new MisbehavingServer(server, certificate === undefined ? 'http' : 'https');
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.scheme}://127.0.0.1:${this.port}`;
  }

  /** Resolves when every connection that was ever made is closed on the server's side too. */
  async allClosed(): Promise<void> {
    const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));
    await Promise.all([...this.sockets].map(closed));
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private remember(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.sockets.delete(socket));
  }

  private accept(socket: Socket): void {
    this.remember(socket);
    const connection = this.connections;
    if (this.onConnection(socket)) return;
    let received = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      this.bytesReceived += chunk.length;
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const request = parseRequest(received, connection);
        if (request === undefined) return;
        received = received.subarray(request.length);
        this.requests.push(request.request);
        this.onRequest(socket, request.request);
      }
    });
  }
}

/** Answers correctly, and closes the connection where the request asked for it. */
export function answer(
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

function parseRequest(
  bytes: Buffer,
  connection: number,
): { request: ReceivedRequest; length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [requestLine = '', ...headerLines] = bytes.toString('latin1', 0, headEnd).split('\r\n');
  const headers = Object.fromEntries(
    headerLines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const bodyStart = headEnd + 4;
  const length = bodyStart + Number(headers['content-length'] ?? 0);
  if (bytes.length < length) return undefined;
  const [method = '', path = ''] = requestLine.split(' ');
  return {
    request: { method, path, headers, body: Buffer.from(bytes.subarray(bodyStart, length)), connection },
    length,
  };
}
