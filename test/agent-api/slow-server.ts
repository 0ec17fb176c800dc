import { once } from 'node:events';
import net from 'node:net';
import { Worker } from 'node:worker_threads';
import { afterEach, jest } from '@jest/globals';

/**
 * The code of a server's thread. After the thread listens, it blocks, so it accepts no connection. The kernel completes two
 * connections for the thread, and ignores all others until the thread accepts.
 */
const THREAD = `
const { createServer } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');
const methods = [];
parentPort.on('message', () => parentPort.postMessage(methods));
const server = createServer((request, response) => {
  methods.push(request.method);
  request.resume().on('end', () => response.end(workerData.body));
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(workerData.gate, 0, 0);
});
`;

/** The function before any test has replaced it. */
const { connect } = net;

/** The address of the slow server, and an address (RFC 3849) that no machine can reach. */
const ADDRESSES = [
  { address: '127.0.0.1', family: 4 },
  { address: '2001:db8::1', family: 6 },
];

/**
 * A server that is far away: it accepts a connection only after the client has also tried the other address of its host. Other
 * clients may have to wait a second, because the kernel repeats a connection attempt after a second.
 */
export class SlowServer {
  private constructor(
    readonly port: number,
    private readonly thread: Worker,
  ) {}

  /** Starts a server until the test has ended. @param body the body of every response */
  static async start(body: string): Promise<SlowServer> {
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const thread = new Worker(THREAD, { eval: true, workerData: { body, gate } });
    const [port] = (await once(thread, 'message')) as [number];
    const occupants = [net.connect(port, '127.0.0.1'), net.connect(port, '127.0.0.1')];
    await Promise.all(occupants.map((socket) => once(socket, 'connect')));
    const open = () => {
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
    };
    const spy = jest.spyOn(net, 'connect').mockImplementation(((options: net.TcpNetConnectOpts) => {
      if (options.host === ADDRESSES[1]?.address) open();
      return connect(options);
    }) as typeof net.connect);
    stops.push(async () => {
      spy.mockRestore();
      for (const socket of occupants) socket.destroy();
      open();
      await thread.terminate();
    });
    return new SlowServer(port, thread);
  }

  /** Returns the methods of the requests that the server received. */
  async listMethods(): Promise<string[]> {
    this.thread.postMessage('list the methods');
    const [methods] = (await once(this.thread, 'message')) as [string[]];
    return methods;
  }

  /** Returns the server's address first, and an address that can't be reached second. */
  readonly resolveHost = () => Promise.resolve(ADDRESSES);
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});
