import { ADDRCONFIG, type LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { connect, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import { formatDuration } from '../contract/duration';

/** The time until the next address is tried too, unless an attempt fails earlier. RFC 8305 recommends 250 ms. */
const NEXT_ADDRESS_MS = 250;

/** Keeps an idle connection open through gateways, as undici's own connections do. */
const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 };

/** Returns the addresses of a host. */
export type ResolveHost = (hostname: string) => Promise<readonly LookupAddress[]>;

/** Node uses the same hint: an address is not returned if this machine has no address of its family. */
const resolveHost: ResolveHost = (hostname) => lookup(hostname, { all: true, hints: ADDRCONFIG });

/**
 * Creates the function with which undici connects. The function tries the addresses of a host as RFC 8305 describes: an attempt
 * continues while the next address is tried, and the first connection is used. Node's own selection of an address is not used,
 * because it ends each attempt after 250 ms, so an address that is farther away is never reached.
 *
 * undici writes the request after the connection is established, so several attempts never send a request twice.
 */
export function createConnector(
  connectTimeoutMs: number,
  resolve: ResolveHost = resolveHost,
): buildConnector.connector {
  const startTls = buildConnector({ timeout: connectTimeoutMs });
  return (options, callback) => {
    const { hostname, port, protocol } = options;
    const isTls = protocol === 'https:';
    resolve(hostname)
      .then((addresses) =>
        connectToFirst(interleaveFamilies(addresses), Number(port) || (isTls ? 443 : 80), connectTimeoutMs),
      )
      .then(
        (socket) => {
          if (isTls) startTls({ ...options, httpSocket: socket }, callback);
          else callback(null, socket);
        },
        (error: unknown) => {
          callback(error as Error, null);
        },
      );
  };
}

/** Alternates IPv6 and IPv4, because often a whole family can't be reached. The resolver's first address stays the first one. */
export function interleaveFamilies(addresses: readonly LookupAddress[]): readonly string[] {
  const [first] = addresses;
  const ofFirst = addresses.filter(({ family }) => family === first?.family);
  const others = addresses.filter(({ family }) => family !== first?.family);
  const pairs = Array.from(addresses, (_, index) => [ofFirst[index], others[index]]);
  return pairs.flat().flatMap((each) => (each === undefined ? [] : [each.address]));
}

/**
 * Connects to the first address that accepts a connection.
 *
 * @throws AggregateError with the failure of each address; an error with the code `UND_ERR_CONNECT_TIMEOUT` after the timeout
 */
export function connectToFirst(
  addresses: readonly string[],
  port: number,
  timeoutMs: number,
  open: typeof connect = connect,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const waiting = [...addresses];
    const attempts = new Set<Socket>();
    const errors: Error[] = [];
    let nextTimer: NodeJS.Timeout | undefined;

    const finish = (winner?: Socket) => {
      clearTimeout(nextTimer);
      clearTimeout(limit);
      for (const socket of attempts)
        if (socket !== winner)
          socket
            .removeAllListeners()
            .on('error', () => undefined)
            .destroy();
    };
    const limit = setTimeout(() => {
      finish();
      const tried = `tried ${addresses.join(', ')}`;
      const message = `no connection within ${formatDuration(timeoutMs)} (${tried})`;
      reject(Object.assign(new Error(message), { code: 'UND_ERR_CONNECT_TIMEOUT' }));
    }, timeoutMs);
    const tryNext = () => {
      clearTimeout(nextTimer);
      const host = waiting.shift();
      if (host === undefined) {
        if (attempts.size > 0) return;
        finish();
        reject(new AggregateError(errors));
        return;
      }
      const socket = open({ ...SOCKET_OPTIONS, host, port });
      attempts.add(socket);
      socket.once('error', (error) => {
        errors.push(error);
        attempts.delete(socket);
        tryNext();
      });
      socket.once('connect', () => {
        socket.removeAllListeners('error');
        finish(socket);
        resolve(socket);
      });
      if (waiting.length > 0) nextTimer = setTimeout(tryNext, NEXT_ADDRESS_MS);
    };
    tryNext();
  });
}
