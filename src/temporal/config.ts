import { type ClientConnectConfig, loadClientConfigProfile, toClientOptions } from '@temporalio/envconfig';
import { certificateProblems } from './tls';

type Environment = Readonly<Record<string, string | undefined>>;

export interface TemporalConfig {
  /** The options of a worker's native connection; those of a client are a part of them. */
  readonly connection: ClientConnectConfig['connectionOptions'];
  /** As given; the port is 7233 where it has none. */
  readonly address: string;
  readonly namespace: string;
}

/** What the SDK connects to where nothing else is said (source: `ConnectionOptions.address`). */
const DEFAULT_ADDRESS = 'localhost:7233';

type LoadedTemporalConfig =
  | { readonly ok: true; readonly config: TemporalConfig; readonly secrets: readonly string[] }
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * The connection to Temporal, from the variables `TEMPORAL_*` and the profile of `temporal.toml`, as the Temporal CLI
 * and every SDK read them. What the SDK would only report when it connects is checked here.
 */
export function loadTemporalConfig(env: Environment): LoadedTemporalConfig {
  try {
    const profile = loadClientConfigProfile({ overrideEnvVars: setOnly(env) });
    const problems: string[] = [];
    // The parser of a profile checks no types: `address = 7233` is a number here, whatever the declaration says.
    const address = profile.address ?? DEFAULT_ADDRESS;
    const namespace = profile.namespace ?? 'default';
    if (!isEndpoint(address)) {
      problems.push(
        'TEMPORAL_ADDRESS: is not host:port; give the address of the gRPC endpoint without scheme and path, such as localhost:7233',
      );
    }
    if (namespace.trim() === '')
      problems.push('TEMPORAL_NAMESPACE: is blank; give a namespace, such as default');
    const { clientCert, clientKey } = profile.tls ?? {};
    if ((clientCert === undefined) !== (clientKey === undefined)) {
      problems.push(
        'TEMPORAL_TLS_CLIENT_CERT_*, TEMPORAL_TLS_CLIENT_KEY_*: one of the two is set; mutual TLS needs the certificate and its key',
      );
    }
    const { connectionOptions } = toClientOptions(profile);
    problems.push(...certificateProblems(connectionOptions.tls));
    if (problems.length > 0) return { ok: false, problems };
    return {
      ok: true,
      config: { connection: { ...connectionOptions, address }, address, namespace },
      secrets: [profile.apiKey, ...Object.values(profile.grpcMeta ?? {})].filter(
        (secret) => secret !== undefined,
      ),
    };
  } catch (error) {
    return { ok: false, problems: [`TEMPORAL_* and temporal.toml: ${reasonOf(error)}`] };
  }
}

function reasonOf(error: unknown): string {
  const [kind, reason] =
    String(error)
      .split('\n', 1)[0]
      ?.split(/Error: (.*)/) ?? [];
  // What envconfig 1.24 makes of a file without any profile, an empty one for example.
  if (kind === 'Type') return 'the file holds no [profile.NAME] table; add one, or remove the file';
  // The first line only: below it, the TOML parser shows the lines of the file, which may hold a key.
  return reason ?? 'unreadable';
}

/** host, host:port or [ipv6]:port, as the SDK takes them. */
function isEndpoint(address: string): boolean {
  const match = /^(?:\[[0-9a-fA-F:.]+\]|[^\s:/[\]]+)(?::(\d{1,5}))?$/.exec(address);
  return match !== null && Number(match[1] ?? 1) >= 1 && Number(match[1] ?? 1) <= 65_535;
}

/** Without empty variables, as for the worker's own; an empty `TEMPORAL_GRPC_META_*` has a meaning: it removes a header. */
function setOnly(env: Environment): Record<string, string> {
  const entries = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (entry[1] !== '' || entry[0].startsWith('TEMPORAL_GRPC_META_')),
  );
  return Object.fromEntries(entries);
}
