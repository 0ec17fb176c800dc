import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

/** A forward proxy on 127.0.0.1 that does CONNECT and nothing else, and remembers what it was asked for. */
export class ConnectProxy {
  /** The requests, in order: `CONNECT host:port`, or another method with its URL. */
  readonly asked: string[] = [];
  /** The `Proxy-Authorization` of each. */
  readonly credentials: (string | undefined)[] = [];
  /** What it does with a CONNECT. */
  onConnect: (socket: Socket, target: string) => void = (socket, target) => {
    this.tunnel(socket, target);
  };
  private readonly sockets = new Set<Socket>();
  private readonly server = createServer((request, response) => {
    this.remember(request);
    response.writeHead(405).end();
  });

  private constructor() {
    this.server.on('connection', (socket: Socket) => {
      this.keep(socket);
    });
    this.server.on('connect', (request: IncomingMessage, socket: Socket) => {
      this.remember(request);
      this.onConnect(socket, request.url ?? '');
    });
  }

  static async start(): Promise<ConnectProxy> {
    const proxy = new ConnectProxy();
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  /** Connections that are open now. */
  get open(): number {
    return this.sockets.size;
  }

  tunnel(socket: Socket, target: string): void {
    const { hostname, port } = new URL(`tcp://${target}`);
    const upstream = connect(Number(port), hostname, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    this.keep(upstream);
    upstream.on('close', () => socket.destroy());
    socket.on('close', () => upstream.destroy());
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private remember({ method, url, headers }: IncomingMessage): void {
    this.asked.push(`${method ?? ''} ${url ?? ''}`);
    this.credentials.push(headers['proxy-authorization']);
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    // Sockets of an HTTP server stay half open otherwise.
    socket.on('end', () => socket.end());
    socket.on('close', () => this.sockets.delete(socket));
  }
}
