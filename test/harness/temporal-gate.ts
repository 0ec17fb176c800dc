import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { eventually } from './eventually';

type Side = 'call' | 'answer';

/** Calls of one method that are held at the gate. */
export interface Hold {
  /** Waits until the first one is there. */
  arrived(): Promise<unknown>;
  /** Lets through what is held, and whatever comes. */
  release(): void;
}

interface Rule extends Hold {
  isFor(method: string, side: Side, message: Buffer): boolean;
  /** Whether a call was held. */
  met: boolean;
  readonly released: Promise<unknown>;
}

/**
 * Stands between a worker and the Temporal server and holds chosen calls, so that a worker can be met at an exact point:
 * after an answer of the agent service and before its report, for instance. It passes on everything else, call by call.
 */
export class TemporalGate {
  private rules: Rule[] = [];
  private readonly polls = new Set<ClientHttp2Stream>();
  private readonly sessions = new Set<ClientHttp2Session>();

  private constructor(
    private readonly server: Http2Server,
    target: string,
  ) {
    server.on('session', (session) => {
      // One session upstream for each: when a worker dies, the server sees its connection end.
      const upstream = connect(`http://${target}`);
      this.sessions.add(upstream);
      upstream.on('error', () => session.destroy());
      upstream.on('close', () => {
        this.sessions.delete(upstream);
        session.destroy();
      });
      session.on('error', () => undefined);
      session.on('close', () => upstream.destroy());
      session.on('stream', (stream, headers) => {
        this.pass(stream, headers, upstream).catch(() => stream.close(constants.NGHTTP2_CANCEL));
      });
    });
  }

  /** @param target `host:port` of the server */
  static async open(target: string): Promise<TemporalGate> {
    const server = createServer();
    const gate = new TemporalGate(server, target);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return gate;
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** From now on holds the calls of a method on their way, or the answers to them, whose message contains a text. */
  hold(method: string, side: Side, containing = ''): Hold {
    const released = new AbortController();
    const rule: Rule = {
      isFor: (...[of, at, message]) => of === method && at === side && content(message).includes(containing),
      ...{ met: false, released: once(released.signal, 'abort') },
      arrived: () => eventually(`a ${side} of ${method} comes to the gate`, () => rule.met),
      release: () => {
        this.rules = this.rules.filter((other) => other !== rule);
        released.abort();
      },
    };
    this.rules.push(rule);
    return rule;
  }

  /**
   * Ends every poll for tasks that waits at the server, for a worker that stands still: no further task goes to it, so
   * that another worker gets them at once instead of after their time-outs. Once it wakes, it polls again.
   */
  endPolls(): void {
    for (const upstream of this.polls) upstream.close(constants.NGHTTP2_CANCEL);
  }

  async close(): Promise<void> {
    for (const rule of this.rules) rule.release();
    for (const session of this.sessions) session.destroy();
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
    await this.heldFor(method, 'call', call);

    const upstream = session.request(headers);
    let trailers: IncomingHttpHeaders | undefined;
    upstream.on('trailers', (received: IncomingHttpHeaders) => {
      trailers = received;
    });
    stream.on('close', () => upstream.close(constants.NGHTTP2_CANCEL));
    if (method.startsWith('Poll')) this.polls.add(upstream);
    upstream.end(call);
    const response = await responseTo(upstream);
    const answer = await buffer(upstream).finally(() => this.polls.delete(upstream));
    await this.heldFor(method, 'answer', answer);

    if (stream.destroyed) return;
    // An error may come without a message, in headers alone.
    stream.respond(response, { endStream: trailers === undefined, waitForTrailers: trailers !== undefined });
    stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}));
    if (trailers !== undefined) stream.end(answer);
  }

  private async heldFor(method: string, side: Side, message: Buffer): Promise<void> {
    const rule = this.rules.find((each) => each.isFor(method, side, message));
    if (rule === undefined) return;
    rule.met = true;
    await rule.released;
  }
}

/** The headers of the answer. @throws Error when the call ends without one */
function responseTo(upstream: ClientHttp2Stream): Promise<IncomingHttpHeaders> {
  return new Promise((resolve, reject) => {
    upstream.once('response', resolve);
    upstream.on('error', reject);
    upstream.once('close', () => reject(new Error('the call was cancelled')));
  });
}

/** A gRPC message: a byte that tells whether it is compressed, four of its length, and the message itself. */
function content(message: Buffer): Buffer {
  return message[0] === 1 ? gunzipSync(message.subarray(5)) : message.subarray(5);
}
