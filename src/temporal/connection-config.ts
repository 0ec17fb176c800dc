import { X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createSecureContext } from 'node:tls';
import type { DataConverter } from '@temporalio/common';
import { type ClientConnectConfig, loadClientConfigProfile, toClientOptions } from '@temporalio/envconfig';
import { isRecord, type Problem, problemTexts } from '../contract/checks';
import { FollowUpError } from '../contract/follow-up-error';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface TemporalConfig {
  /** Address, API key, TLS and metadata, which a worker's native connection and a client's take alike. */
  readonly connection: ClientConnectConfig['connectionOptions'];
  /** As given; the port is 7233 where it has none. */
  readonly address: string;
  readonly namespace: string;
  /** The API key, and the values of headers whose names indicate a secret. */
  readonly secrets: readonly string[];
}

const DEFAULT_ADDRESS = 'localhost:7233';

/** The value of any other header, such as `x-env: production`, may be an ordinary word of the log. */
const SECRET_HEADER = /authorization|token|key|secret/i;

/** Thrown for settings that can't be right. It names every problem, and holds no secret. */
export class ConfigurationError extends FollowUpError {
  /** @param problems the field of each is its variable */
  constructor(
    readonly problems: readonly Problem[],
    options?: ErrorOptions,
  ) {
    super('INVALID_CONFIGURATION', `The configuration is wrong: ${problemTexts(problems)}`, options);
  }
}

/**
 * Reads the variables and profiles of Temporal as its CLI and every SDK do, and checks what would only fail when it connects.
 *
 * @throws ConfigurationError
 */
export function loadTemporalConfig(env: Environment): TemporalConfig {
  const { profile, connectionOptions } = readProfile(env);
  // The parser of a profile checks no types: `address = 7233` is a number here, whatever the declaration says.
  const { address = DEFAULT_ADDRESS, namespace = 'default', tls, apiKey, grpcMeta } = profile;
  const problems = certificateProblems(connectionOptions.tls);
  if (!isEndpoint(address))
    problems.push({
      field: 'TEMPORAL_ADDRESS',
      text: `is not host:port; give the gRPC endpoint without scheme and path, such as ${DEFAULT_ADDRESS}`,
    });
  if (namespace.trim() === '')
    problems.push({ field: 'TEMPORAL_NAMESPACE', text: 'is blank; give a namespace, such as default' });
  if ((tls?.clientCert === undefined) !== (tls?.clientKey === undefined))
    problems.push({
      field: 'TEMPORAL_TLS_CLIENT_CERT_*, TEMPORAL_TLS_CLIENT_KEY_*',
      text: 'one of the two is set; mutual TLS needs the certificate and its key',
    });
  if (problems.length > 0) throw new ConfigurationError(problems);
  const headers = Object.entries(grpcMeta ?? {}).filter(([name]) => SECRET_HEADER.test(name));
  const secrets = [apiKey, ...headers.map(([, value]) => value)];
  return {
    connection: { ...connectionOptions, address },
    address,
    namespace,
    secrets: secrets.filter((secret) => secret !== undefined),
  };
}

function readProfile(env: Environment) {
  try {
    // An empty variable counts as not set; but an empty TEMPORAL_GRPC_META_* removes a header.
    const set = Object.entries(env).filter(
      ([name, value]) => value !== undefined && (value !== '' || name.startsWith('TEMPORAL_GRPC_META_')),
    );
    const overrideEnvVars = Object.fromEntries(set) as Record<string, string>;
    const profile = loadClientConfigProfile({ overrideEnvVars });
    return { profile, connectionOptions: toClientOptions(profile).connectionOptions };
  } catch (error) {
    // So envconfig 1.24 takes a file without any profile.
    const isEmpty = error instanceof TypeError;
    const text = isEmpty ? 'the file holds no [profile.NAME] table; add one' : firstLine(error);
    throw new ConfigurationError([{ field: 'TEMPORAL_* and temporal.toml', text }]);
  }
}

/** Below it, the TOML parser shows the lines of the file, which may hold a key. */
function firstLine(error: unknown): string {
  return (String(error).split('\n', 1)[0] ?? '').replace(/^(\w*Error: )+/, '');
}

function tlsOptions(tls: TemporalConfig['connection']['tls']) {
  return typeof tls === 'object' && tls ? tls : {};
}

function certificateProblems(tls: TemporalConfig['connection']['tls']): Problem[] {
  const { serverRootCACertificate: ca, clientCertPair: pair } = tlsOptions(tls);
  try {
    // A secure context ignores a certificate authority that is not a certificate.
    if (ca) new X509Certificate(ca);
    if (pair) createSecureContext({ cert: Buffer.from(pair.crt), key: Buffer.from(pair.key) });
    return [];
  } catch (error) {
    const text = `certificates and their unencrypted key must be given in PEM (${firstLine(error)})`;
    return [{ field: 'TEMPORAL_TLS_*', text }];
  }
}

/** host, host:port or [ipv6]:port, as the SDK takes them. */
function isEndpoint(address: string): boolean {
  return /^(\[[0-9a-f:.]+\]|[^\s:/[\]]+)(:0*[1-9]\d*)?$/i.test(address) && URL.canParse(`tcp://${address}`);
}

/** An empty variable counts as not set: Docker Compose passes on so what is not set outside. */
export function readVariable(env: Environment, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === '' ? undefined : text;
}

const CONVERTER = 'FOLLOW_UP_DATA_CONVERTER';

/** By `FOLLOW_UP_DATA_CONVERTER`, relative to the working directory; undefined where it is not set. @throws ConfigurationError */
export async function loadDataConverter(env: Environment): Promise<DataConverter | undefined> {
  const configuredPath = readVariable(env, CONVERTER);
  if (configuredPath === undefined) return undefined;
  const file = path.resolve(configuredPath);
  const converterError = (text: string) =>
    new ConfigurationError([{ field: CONVERTER, text: `${file} ${text}` }]);
  let converter: unknown;
  try {
    // Node 20.19 and newer require ES modules too.
    const loaded = createRequire(file)(file) as { dataConverter?: unknown; default?: unknown };
    converter = await (loaded.dataConverter ?? loaded.default);
  } catch (error) {
    throw converterError(`can't be loaded (${firstLine(error)}); give the path of a JavaScript module`);
  }
  const parts = ['payloadConverterPath', 'failureConverterPath', 'payloadCodecs'];
  if (isRecord(converter) && parts.some((part) => converter[part] !== undefined)) return converter;
  throw converterError(
    'must export a DataConverter of @temporalio/common, or a promise of one, as "dataConverter" or as default',
  );
}
