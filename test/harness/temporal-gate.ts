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

type Side = 'call' | 'response';

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

  /** Waits until the first of these calls is held. */
  async waitForCall(): Promise<void> {
    await eventually(`the gate holds a ${this.side} of ${this.method}`, () => this.hasCall);
  }

  /** Passes on the held calls and all later calls. */
  release(): void {
    this.end.abort();
  }

  /** Waits until the release if the message meets the conditions of this hold. */
  async pass(method: string, side: Side, message: Buffer): Promise<void> {
    if (method !== this.method || side !== this.side || !messageContent(message).includes(this.containing))
      return;
    this.hasCall = true;
    await this.ended;
  }
}

/** The response of a gateway that rejects a call: a gRPC status, or the page of an HTTP status. */
export type Rejection = { readonly grpcStatus: number } | { readonly httpStatus: number };

/**
 * A proxy between a worker and the Temporal server that holds or rejects chosen calls. A test can therefore kill a worker at an
 * exact point, for example between the agent service's response and the worker's report. A test can also imitate a gateway that
 * rejects whole services. The proxy passes on all other calls one by one.
 */
export class TemporalGate {
  private readonly server = createServer();
  private readonly holds: Hold[] = [];
  private readonly rejections: { readonly path: RegExp; readonly rejection: Rejection }[] = [];
  /** The methods of the rejected calls. */
  readonly rejectedMethods = new Set<string>();
  private readonly calls: { readonly method: string; readonly message: Buffer }[] = [];
  private readonly polls: ClientHttp2Stream[] = [];
  private readonly upstreams: ClientHttp2Session[] = [];

  /** @param target `host:port` of the Temporal server */
  static async open(target: string): Promise<TemporalGate> {
    const gate = new TemporalGate();
    gate.server.on('session', (session) => {
      // Each worker connection has its own upstream session, so that the Temporal server's connection ends when a worker dies.
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

  /**
   * Holds all further calls of a method (the side `call`) or all further responses (`response`) whose message contains a text. The
   * default text matches every message.
   */
  hold(method: string, side: Side, containing = ''): Hold {
    const hold = new Hold(method, side, containing);
    this.holds.push(hold);
    return hold;
  }

  /** Rejects all further calls whose path, such as `/SERVICE/METHOD`, matches. @returns a function that ends the rejection */
  reject(path: RegExp, rejection: Rejection): () => void {
    const added = { path, rejection };
    this.rejections.push(added);
    return () => {
      this.rejections.splice(this.rejections.indexOf(added), 1);
    };
  }

  /** Returns the methods of all calls so far whose message contains a text, in the order of the calls. */
  methodsContaining(containing: string): string[] {
    return this.calls.filter(({ message }) => message.includes(containing)).map(({ method }) => method);
  }

  /**
   * Ends every task poll of a frozen worker that waits at the Temporal server. The server then gives further tasks to another
   * worker at once, instead of after a timeout. When the frozen worker continues, it polls again.
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
    const { ':path': path = '' } = headers;
    const method = path.split('/').at(-1) ?? '';
    const call = await buffer(stream);
    const rejected = this.rejections.find((each) => each.path.test(path));
    if (rejected !== undefined) {
      this.rejectedMethods.add(method);
      rejectCall(stream, rejected.rejection);
      return;
    }
    this.calls.push({ method, message: messageContent(call) });
    for (const hold of this.holds) await hold.pass(method, 'call', call);

    const upstream = session.request(headers);
    let trailers: IncomingHttpHeaders | undefined;
    upstream.on('trailers', (received: IncomingHttpHeaders) => (trailers = received));
    stream.on('close', () => upstream.close(constants.NGHTTP2_CANCEL));
    if (method.startsWith('Poll')) this.polls.push(upstream);
    upstream.end(call);
    const cancelled = once(upstream, 'close').then(() =>
      Promise.reject(new Error('The call ended without a response.')),
    );
    const [response] = (await Promise.race([once(upstream, 'response'), cancelled])) as [IncomingHttpHeaders];
    const answer = await buffer(upstream);
    for (const hold of this.holds) await hold.pass(method, 'response', answer);

    if (stream.destroyed) return;
    // A gRPC error can consist of headers only, without a message.
    stream.respond(response, { endStream: trailers === undefined, waitForTrailers: trailers !== undefined });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}));
    if (trailers !== undefined) stream.end(answer);
  }
}

function rejectCall(stream: ServerHttp2Stream, rejection: Rejection): void {
  if ('httpStatus' in rejection) {
    stream.respond({ ':status': rejection.httpStatus, 'content-type': 'text/html' });
    stream.end('<h1>The gateway rejects the call.</h1>');
    return;
  }
  const status = {
    'grpc-status': String(rejection.grpcStatus),
    'grpc-message': 'the gateway rejects the call',
  };
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true });
}

/**
 * Returns the content of a gRPC message. A gRPC message has one byte for the compression, four bytes for the length, and the
 * content.
 */
function messageContent(message: Buffer): Buffer {
  return message[0] === 1 ? gunzipSync(message.subarray(5)) : message.subarray(5);
}
