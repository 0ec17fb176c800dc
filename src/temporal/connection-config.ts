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
  /** The address, API key, TLS options and metadata. A worker's connection and a client's connection accept the same options. */
  readonly connection: ClientConnectConfig['connectionOptions'];
  /** The address as configured. If it has no port, the SDK uses 7233. */
  readonly address: string;
  readonly namespace: string;
  /** The API key, and the values of headers whose names indicate a secret. */
  readonly secrets: readonly string[];
}

const DEFAULT_ADDRESS = 'localhost:7233';

/** The names of headers with a secret. The value of another header, such as `x-env: production`, may be a normal word in a log. */
const SECRET_HEADER = /authorization|token|key|secret/i;

/** Thrown when the configuration is invalid. The message names every problem and contains no secret. */
export class ConfigurationError extends FollowUpError {
  /** @param problems the field of each problem is the name of a variable */
  constructor(
    readonly problems: readonly Problem[],
    options?: ErrorOptions,
  ) {
    super('INVALID_CONFIGURATION', `Invalid configuration: ${problemTexts(problems)}`, options);
  }
}

/**
 * Reads the `TEMPORAL_*` variables and the profile in `temporal.toml` in the same way as the Temporal CLI and every SDK. Some
 * mistakes would otherwise be reported only when the SDK connects, so the function checks for them.
 *
 * @throws ConfigurationError with every problem
 */
export function loadTemporalConfig(env: Environment): TemporalConfig {
  const { profile, connectionOptions } = readProfile(env);
  // The parser of a profile does not check types: with `address = 7233`, the address is a number here, contrary to its type.
  const { address = DEFAULT_ADDRESS, namespace = 'default', tls, apiKey, grpcMeta } = profile;
  const problems = certificateProblems(connectionOptions.tls);
  if (!isEndpoint(address))
    problems.push({
      field: 'TEMPORAL_ADDRESS',
      text: `is not host:port; set it to the gRPC endpoint without scheme and path, such as ${DEFAULT_ADDRESS}`,
    });
  if (namespace.trim() === '')
    problems.push({ field: 'TEMPORAL_NAMESPACE', text: 'is blank; set it to a namespace, such as default' });
  if ((tls?.clientCert === undefined) !== (tls?.clientKey === undefined))
    problems.push({
      field: 'TEMPORAL_TLS_CLIENT_CERT_*, TEMPORAL_TLS_CLIENT_KEY_*',
      text: 'only one of the two is set; set both, because mutual TLS needs the certificate and its key',
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
    // An empty variable counts as not set. The exception is TEMPORAL_GRPC_META_*, because an empty value removes a header.
    const entries = Object.entries(env).filter(
      ([name, value]) => value !== undefined && (value !== '' || name.startsWith('TEMPORAL_GRPC_META_')),
    );
    const overrideEnvVars = Object.fromEntries(entries) as Record<string, string>;
    const profile = loadClientConfigProfile({ overrideEnvVars });
    return { profile, connectionOptions: toClientOptions(profile).connectionOptions };
  } catch (error) {
    // envconfig 1.24 throws a TypeError if the file has no profile.
    const isEmpty = error instanceof TypeError;
    const text = isEmpty ? 'the file has no [profile.NAME] table; add one' : firstLine(error);
    throw new ConfigurationError([{ field: 'TEMPORAL_* and temporal.toml', text }]);
  }
}

/** Returns only the first line of a message. A TOML parser's next lines quote the file, which may contain a key. */
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
    const text = `must be certificates and an unencrypted key in PEM format (${firstLine(error)})`;
    return [{ field: 'TEMPORAL_TLS_*', text }];
  }
}

/** Returns whether an address has a form that the SDK accepts: host, host:port or [ipv6]:port. */
function isEndpoint(address: string): boolean {
  return /^(\[[0-9a-f:.]+\]|[^\s:/[\]]+)(:0*[1-9]\d*)?$/i.test(address) && URL.canParse(`tcp://${address}`);
}

/** Returns the value of a variable. An empty value counts as not set, because Docker Compose passes unset variables as empty. */
export function readVariable(env: Environment, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === '' ? undefined : text;
}

const CONVERTER = 'FOLLOW_UP_DATA_CONVERTER';

/**
 * Loads the data converter from the module that `FOLLOW_UP_DATA_CONVERTER` names, relative to the working directory.
 *
 * @returns undefined if the variable is not set
 * @throws ConfigurationError if the module can't be loaded or does not export a data converter
 */
export async function loadDataConverter(env: Environment): Promise<DataConverter | undefined> {
  const configuredPath = readVariable(env, CONVERTER);
  if (configuredPath === undefined) return undefined;
  const file = path.resolve(configuredPath);
  const converterError = (text: string) =>
    new ConfigurationError([{ field: CONVERTER, text: `${file} ${text}` }]);
  let converter: unknown;
  try {
    // From version 20.19 on, Node can also load ES modules with `require`.
    const loaded = createRequire(file)(file) as { dataConverter?: unknown; default?: unknown };
    converter = await (loaded.dataConverter ?? loaded.default);
  } catch (error) {
    throw converterError(`can't be loaded (${firstLine(error)}); set it to the path of a JavaScript module`);
  }
  const parts = ['payloadConverterPath', 'failureConverterPath', 'payloadCodecs'];
  if (isRecord(converter) && parts.some((part) => converter[part] !== undefined)) return converter;
  throw converterError(
    'must export a DataConverter of @temporalio/common, or a promise of one, as "dataConverter" or as the default export',
  );
}
