import { createPrivateKey, X509Certificate } from 'node:crypto';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ClientConnectConfig } from '@temporalio/envconfig';

type Tls = ClientConnectConfig['connectionOptions']['tls'];

/** What is wrong with the certificates and the key that the configuration gives; nothing of the key is shown. */
export function certificateProblems(tls: Tls): string[] {
  if (typeof tls !== 'object' || tls === null) return [];
  const { serverRootCACertificate: ca, clientCertPair: pair } = tls;
  const problems: string[] = [];
  const parsed = <T>(variables: string, what: string, parse: () => T): T | undefined => {
    try {
      return parse();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      problems.push(`${variables}: is not ${what} in PEM (${reason})`);
      return undefined;
    }
  };
  if (ca) parsed('TEMPORAL_TLS_SERVER_CA_CERT_*', 'a certificate', () => new X509Certificate(ca));
  if (!pair) return problems;
  const certificate = parsed(
    'TEMPORAL_TLS_CLIENT_CERT_*',
    'a certificate',
    () => new X509Certificate(pair.crt),
  );
  const key = parsed('TEMPORAL_TLS_CLIENT_KEY_*', 'an unencrypted private key', () =>
    createPrivateKey(Buffer.from(pair.key)),
  );
  if (certificate && key && !certificate.checkPrivateKey(key)) {
    problems.push(
      'TEMPORAL_TLS_CLIENT_CERT_*, TEMPORAL_TLS_CLIENT_KEY_*: the key is not the one of the certificate',
    );
  }
  return problems;
}

/** A server answers the first bytes within this time; one that says nothing tells nothing. */
const PROBE_MS = 2_000;

/** The beginning of every HTTP/2 connection (RFC 9113, 3.4), with empty settings: a gRPC server answers it with its own. */
const HTTP2_PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

/** What a look at the TLS of a server found. */
export interface TlsTrouble {
  readonly words: string;
  /** False where a server that is only starting, or a proxy before one, might look the same. */
  readonly isCertain: boolean;
}

/**
 * Why no connection comes about at an address where something listens, if it is the TLS settings: gRPC keeps that to
 * itself. It makes one connection more and looks how it ends.
 */
export async function tlsTrouble(address: string, tls: Tls): Promise<TlsTrouble | undefined> {
  const { hostname, port } = endpointOf(address);
  if (tls === undefined || tls === null || tls === false) {
    const end = await endOf(connectTcp({ host: hostname, port }), 'connect');
    if (end.answered || !end.closed) return undefined;
    const greeting = { host: hostname, port, ALPNProtocols: ['h2'], rejectUnauthorized: false };
    if ((await endOf(connectTls(greeting), 'secureConnect')).connected) {
      return { words: `the server wants TLS; ${TURN_TLS_ON}`, isCertain: true };
    }
    return {
      words: `the server ends the connection at once; if it wants TLS, ${TURN_TLS_ON}`,
      isCertain: false,
    };
  }
  const { serverNameOverride, serverRootCACertificate: ca, clientCertPair: pair } = tls === true ? {} : tls;
  const servername = serverNameOverride ?? (isIP(hostname) === 0 ? hostname : '');
  const end = await endOf(
    connectTls({
      host: hostname,
      port,
      servername,
      ALPNProtocols: ['h2'],
      ...(ca ? { ca: Buffer.from(ca) } : {}),
      ...(pair ? { cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) } : {}),
    }),
    'secureConnect',
  );
  if (end.error !== undefined) return { words: tlsWords(end.error), isCertain: true };
  if (!end.closed) return undefined;
  const words = `the server ends the connection after the TLS handshake; ${CHECK_CLIENT_CERTIFICATE}`;
  return { words, isCertain: false };
}

/** Host and port of a checked address; the port is 7233 where it has none. */
export function endpointOf(address: string): { hostname: string; port: number } {
  const { hostname, port } = new URL(`tcp://${address}`);
  return { hostname: hostname.replace(/^\[|\]$/g, ''), port: Number(port || '7233') };
}

interface End {
  /** As far as TCP, or the TLS handshake. */
  readonly connected: boolean;
  /** It answered with something. */
  readonly answered?: true;
  /** The other side ended it, without an answer or with a TLS alert. */
  readonly closed?: true;
  readonly error?: NodeJS.ErrnoException;
}

/** The first byte of a TLS alert (RFC 8446, 5.1), with which a TLS server may answer what is not TLS. */
const TLS_ALERT = 0x15;

/** How a connection goes on once it has begun as HTTP/2: TLS 1.3 refuses a client's certificate only then. */
function endOf(socket: Socket, connectedBy: 'connect' | 'secureConnect'): Promise<End> {
  return new Promise((resolve) => {
    let connected = false;
    const end = (how: Omit<End, 'connected'>): void => {
      resolve({ connected, ...how });
      socket.destroy();
    };
    socket.setTimeout(PROBE_MS, () => {
      end({});
    });
    socket.once(connectedBy, () => {
      connected = true;
      socket.write(HTTP2_PREFACE);
    });
    socket.once('data', (chunk: Buffer) => {
      end(chunk[0] === TLS_ALERT ? { closed: true } : { answered: true });
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      // A reset says no more than an end does.
      end(error.code === 'ECONNRESET' || error.code === 'EPIPE' ? { closed: true } : { error });
    });
    socket.once('close', () => {
      end({ closed: true });
    });
  });
}

const TURN_TLS_ON = 'set TEMPORAL_TLS=true, or TEMPORAL_API_KEY';
const CHECK_CLIENT_CERTIFICATE =
  'it may want a client certificate, or another one: check TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_*';

function tlsWords(error: NodeJS.ErrnoException & { reason?: string }): string {
  const { code = '', message } = error;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `the server's certificate is for another name (${error.reason ?? message}); check TEMPORAL_ADDRESS, or set TEMPORAL_TLS_SERVER_NAME`;
  }
  if (code.includes('NO_APPLICATION_PROTOCOL')) {
    return 'the server speaks TLS, but no HTTP/2, so it is not Temporal; check TEMPORAL_ADDRESS';
  }
  if (/ALERT|HANDSHAKE/.test(code)) {
    return `the server refuses the TLS handshake (${error.reason ?? code}); ${CHECK_CLIENT_CERTIFICATE}`;
  }
  if (/^(ERR_SSL_|EPROTO)/.test(code)) {
    return 'the server speaks no TLS; unset TEMPORAL_TLS*, or set TEMPORAL_TLS=false if an API key turns it on';
  }
  if (/CERT|ISSUER|SIGNATURE|CRL/.test(code)) {
    return `the server's certificate is not trusted (${code}); give the certificate of its authority by TEMPORAL_TLS_SERVER_CA_CERT_PATH`;
  }
  return `no TLS connection comes about (${code === '' ? message : code})`;
}
