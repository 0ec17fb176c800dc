import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { eventually } from '../../tools/lib/eventually';

type Side = 'call' | 'answer';

/** Calls of one method that are held at the gate. */
export class Hold {
  private hasCall = false;
  private readonly end = new AbortController();
  private readonly ended = once(this.end.signal, 'abort');

  constructor(
    private readonly method: string,
    private readonly side: Side,
    private readonly containing: string,
  ) {}

  /** Waits until the first one is there. */
  async waitForCall(): Promise<void> {
    await eventually(`a ${this.side} of ${this.method} comes to the gate`, () => this.hasCall);
  }

  /** Lets through what is held, and whatever comes. */
  release(): void {
    this.end.abort();
  }

  /** Waits for the release where it holds such a message. */
  async pass(method: string, side: Side, message: Buffer): Promise<void> {
    if (method !== this.method || side !== this.side || !messageContent(message).includes(this.containing))
      return;
    this.hasCall = true;
    await this.ended;
  }
}

/**
 * Stands between a worker and the Temporal server and holds chosen calls, so that a worker can be met at an exact point:
 * after an answer of the agent service and before its report, for instance. It passes on everything else, call by call.
 */
export class TemporalGate {
  private readonly server = createServer();
  private readonly holds: Hold[] = [];
  private readonly calls: { readonly method: string; readonly message: Buffer }[] = [];
  private readonly polls: ClientHttp2Stream[] = [];
  private readonly upstreams: ClientHttp2Session[] = [];

  /** @param target `host:port` of the server */
  static async open(target: string): Promise<TemporalGate> {
    const gate = new TemporalGate();
    gate.server.on('session', (session) => {
      // One session upstream for each: when a worker dies, the server sees its connection end.
      const upstream = connect(`http://${target}`);
      gate.upstreams.push(upstream);
      upstream.on('error', () => undefined).on('close', () => session.destroy());
      session.on('error', () => undefined).on('close', () => upstream.destroy());
      session.on('stream', (stream, headers) => {
        gate.pass(stream, headers, upstream).catch(() => stream.close(constants.NGHTTP2_CANCEL));
      });
    });
    await once(gate.server.listen(0, '127.0.0.1'), 'listening');
    return gate;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** From now on holds the calls of a method on their way, or the answers to them, whose message contains a text. */
  hold(method: string, side: Side, containing = ''): Hold {
    const hold = new Hold(method, side, containing);
    this.holds.push(hold);
    return hold;
  }

  /** Returns the methods of the calls so far whose message contains a text, in their order. */
  methodsContaining(containing: string): string[] {
    return this.calls.filter(({ message }) => message.includes(containing)).map(({ method }) => method);
  }

  /**
   * Ends every poll for tasks that waits at the server, for a worker that stands still: no further task goes to it, so
   * that another worker gets them at once instead of after their time-outs. Once it wakes, it polls again.
   */
  endPolls(): void {
    for (const upstream of this.polls) upstream.close(constants.NGHTTP2_CANCEL);
  }

  async close(): Promise<void> {
    for (const hold of this.holds) hold.release();
    for (const upstream of this.upstreams) upstream.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private async pass(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    session: ClientHttp2Session,
  ): Promise<void> {
    stream.on('error', () => undefined);
    const method = headers[':path']?.split('/').at(-1) ?? '';
    const call = await buffer(stream);
    this.calls.push({ method, message: messageContent(call) });
    for (const hold of this.holds) await hold.pass(method, 'call', call);

    const upstream = session.request(headers);
    let trailers: IncomingHttpHeaders | undefined;
    upstream.on('trailers', (received: IncomingHttpHeaders) => (trailers = received));
    stream.on('close', () => upstream.close(constants.NGHTTP2_CANCEL));
    if (method.startsWith('Poll')) this.polls.push(upstream);
    upstream.end(call);
    const cancelled = once(upstream, 'close').then(() => Promise.reject(new Error('without an answer')));
    const [response] = (await Promise.race([once(upstream, 'response'), cancelled])) as [IncomingHttpHeaders];
    const answer = await buffer(upstream);
    for (const hold of this.holds) await hold.pass(method, 'answer', answer);

    if (stream.destroyed) return;
    // An error may come without a message, in headers alone.
    stream.respond(response, { endStream: trailers === undefined, waitForTrailers: trailers !== undefined });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}));
    if (trailers !== undefined) stream.end(answer);
  }
}

/** A gRPC message: a byte that tells whether it is compressed, four of its length, and the message itself. */
function messageContent(message: Buffer): Buffer {
  return message[0] === 1 ? gunzipSync(message.subarray(5)) : message.subarray(5);
}
