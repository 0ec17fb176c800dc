import { GRPC_STATUS } from '../client/grpc-status';
import type { TemporalConfig } from '../client/temporal-config';
import type { Trouble } from './retry';

/** Temporal's Rust core reports a failed connection as text only; these are its words (SDK 1.24, measured). */
const CORE_SAYS = {
  unauthenticated: 'does not have valid authentication credentials',
  permissionDenied: 'does not have permission',
  noTlsThere: 'InvalidContentType',
  certificate: 'InvalidCertificate',
  handshake: /AlertReceived|HandshakeFailure|PrivateKeyParseError|CertificateParseError|PeerIncompatible/,
  refused: 'ConnectionRefused',
  name: 'dns error',
  notGrpc: 'h2 protocol error',
};

/**
 * Why Temporal can't be had, in words that name the variable to look at, and whether waiting may heal it.
 *
 * Waiting heals a server that is not there yet, and a namespace that an initial job has still to create. It does not
 * heal what this process was given: credentials and TLS settings are read once, at its start.
 */
export function explainTrouble(error: unknown, temporal: TemporalConfig): Trouble {
  const { address, namespace } = temporal;
  const text = error instanceof Error ? error.message : String(error);
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;

  if (code === GRPC_STATUS.UNAUTHENTICATED || text.includes(CORE_SAYS.unauthenticated)) {
    return hopeless(
      `Temporal at ${address} does not accept the credentials: check TEMPORAL_API_KEY or the TLS client certificate`,
    );
  }
  if (code === GRPC_STATUS.PERMISSION_DENIED || text.includes(CORE_SAYS.permissionDenied)) {
    return hopeless(
      `Temporal at ${address} denies access to the namespace ${JSON.stringify(namespace)}: check TEMPORAL_NAMESPACE and what the credentials may do`,
    );
  }
  if (code === GRPC_STATUS.NOT_FOUND) {
    return heals(
      `Temporal at ${address} has no namespace ${JSON.stringify(namespace)} yet: check TEMPORAL_NAMESPACE, or create it with "temporal operator namespace create --namespace ${namespace}"`,
    );
  }
  if (text.includes(CORE_SAYS.noTlsThere)) {
    return hopeless(
      `Temporal at ${address} does not speak TLS: unset TEMPORAL_TLS* (or set TEMPORAL_TLS=false), or check TEMPORAL_ADDRESS`,
    );
  }
  if (text.includes(CORE_SAYS.certificate)) {
    return hopeless(
      `the TLS certificate of Temporal at ${address} is not trusted (${tlsReason(text)}): check TEMPORAL_TLS_SERVER_CA_CERT_PATH and TEMPORAL_TLS_SERVER_NAME`,
    );
  }
  if (CORE_SAYS.handshake.test(text)) {
    return hopeless(
      `the TLS handshake with Temporal at ${address} failed (${tlsReason(text)}): check TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_*`,
    );
  }
  if (text.includes(CORE_SAYS.refused))
    return heals(`Temporal at ${address} is not there yet (connection refused)`);
  if (text.includes(CORE_SAYS.name))
    return heals(`the name of ${address} is not known yet: check TEMPORAL_ADDRESS`);
  if (text.includes(CORE_SAYS.notGrpc)) {
    return heals(
      `what answers at ${address} is no Temporal server: check TEMPORAL_ADDRESS (the gRPC port, 7233 by default, not the Web UI's)`,
    );
  }
  return heals(`Temporal at ${address} can't be reached: ${text.slice(0, 300)}`);
}

function heals(message: string): Trouble {
  return { message, heals: true };
}

function hopeless(message: string): Trouble {
  return { message, heals: false };
}

/** `InvalidCertificate(UnknownIssuer)` out of the core's nested text. */
function tlsReason(text: string): string {
  return (
    /(?:InvalidCertificate|AlertReceived|PeerIncompatible)\([^)]*\)+|HandshakeFailure|\w+ParseError/.exec(
      text,
    )?.[0] ?? 'unknown reason'
  );
}
