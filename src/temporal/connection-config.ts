import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { LoadedDataConverter } from '@temporalio/common';
import { type Problem, problemTexts } from '../contract/checks';
import { FollowUpError } from '../contract/follow-up-error';
import {
  type ConnectionSettings,
  DEFAULT_ADDRESS,
  firstLine,
  readTemporalProfile,
  type TemporalProfile,
  toConnectionOptions,
} from './temporal-profile';
import { type Environment, readTemporalVariables } from './temporal-variables';

export type { Environment } from './temporal-variables';

export interface TemporalConfig {
  readonly connection: ConnectionSettings;
  /** The address as configured. If it has no port, the SDK uses 7233. */
  readonly address: string;
  readonly namespace: string;
  /** The API key, the lines of the TLS key, the codec's token, and the values of headers whose names indicate a secret. */
  readonly secrets: readonly string[];
  /** Whether `TEMPORAL_CODEC_ENDPOINT` is set, so that payloads must be encoded. */
  readonly hasCodecEndpoint: boolean;
}

/** Thrown when the configuration is invalid. The message names every problem and contains no secret. */
export class ConfigurationError extends FollowUpError {
  declare readonly code: 'INVALID_CONFIGURATION';

  /** @param problems the field of each problem names the variables, the file or the option */
  constructor(
    readonly problems: readonly Problem[],
    options?: ErrorOptions,
  ) {
    super('INVALID_CONFIGURATION', `Invalid configuration: ${problemTexts(problems)}`, options);
  }
}

/**
 * Reads the `TEMPORAL_*` variables and the profile in `temporal.toml` with the same meaning as the Temporal CLI. Some mistakes would
 * otherwise be reported only when the SDK connects, so the function checks for them.
 *
 * @throws ConfigurationError with every problem. No problem shows a secret.
 */
export function loadTemporalConfig(env: Environment): TemporalConfig {
  const variables = readTemporalVariables(env);
  const { profile, problems } = readTemporalProfile(variables);
  const { address = DEFAULT_ADDRESS, namespace = 'default', api_key: apiKey, codec, headers } = profile;
  const connection = toConnectionOptions(profile);
  problems.push(...variables.problems, ...certificateProblems(connection.tls));
  const report = (field: string, text: string) => void problems.push({ field, text });
  if (!isEndpoint(address))
    report(
      'TEMPORAL_ADDRESS',
      `is not host:port; set it to the gRPC endpoint without scheme and path, such as ${DEFAULT_ADDRESS}`,
    );
  if (namespace.trim() === '')
    report('TEMPORAL_NAMESPACE', 'is blank; set it to a namespace, such as default');
  if (apiKey !== undefined && headers.authorization !== undefined)
    report('TEMPORAL_API_KEY, TEMPORAL_GRPC_META_AUTHORIZATION', 'both are set; set only one of them');
  if (codec.endpoint !== undefined && readVariable(env, 'FOLLOW_UP_PLUGINS') === undefined)
    report(
      'TEMPORAL_CODEC_ENDPOINT',
      'is set, but a codec server is not supported; set FOLLOW_UP_PLUGINS to a plugin that encodes payloads, or unset it',
    );
  if (problems.length > 0) throw new ConfigurationError(problems);
  const hasCodecEndpoint = codec.endpoint !== undefined;
  return { connection, address, namespace, secrets: secretsOf(profile), hasCodecEndpoint };
}

/**
 * Checks that the plugins encode payloads if `TEMPORAL_CODEC_ENDPOINT` is set. Otherwise, the prompts would be stored as plain text.
 *
 * @throws ConfigurationError
 */
export function checkCodec(
  { hasCodecEndpoint = false }: Partial<TemporalConfig>,
  { payloadCodecs }: LoadedDataConverter,
): void {
  if (!hasCodecEndpoint || payloadCodecs.length > 0) return;
  const text = 'is set, but no plugin of FOLLOW_UP_PLUGINS encodes payloads; add such a plugin, or unset it';
  throw new ConfigurationError([{ field: 'TEMPORAL_CODEC_ENDPOINT', text }]);
}

/** The names of headers with a secret. The value of another header, such as `x-env: production`, may be a normal word in a log. */
const SECRET_HEADER = /authorization|token|key|secret|password|cookie/;

/** Returns the secrets of a profile. Each line of a private key is one secret, because a message may quote a single line. */
function secretsOf({ api_key: apiKey, tls, codec, headers }: TemporalProfile): string[] {
  const keyLines = (tls?.client_key_data ?? '').split('\n').filter((line) => !line.startsWith('-----'));
  const secretHeaders = Object.entries(headers).filter(([name]) => SECRET_HEADER.test(name));
  // A server may repeat the token of `Bearer TOKEN` without the first word.
  const tokens = [...secretHeaders.map(([, value]) => value), codec.auth ?? ''].map((value) =>
    value.replace(/^(Bearer|Basic)\s+/i, ''),
  );
  return [apiKey ?? '', ...keyLines, ...tokens].map((secret) => secret.trim()).filter(Boolean);
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
