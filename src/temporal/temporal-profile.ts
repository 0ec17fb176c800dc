import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from '@temporalio/client';
import { isRecord, type JsonObject, type Problem } from '../contract/checks';
import { CODEC_FIELDS, type FieldTypes, loadProfile, PROFILE_FIELDS, TLS_FIELDS } from './temporal-toml';
import { apiKeyProblem, headerName, headerProblem, type TemporalVariables } from './temporal-variables';

type Fields<T extends FieldTypes> = {
  -readonly [K in keyof T]?: T[K] extends 'string' ? string : boolean;
};

/** A profile of `temporal.toml`, overridden by the variables. */
export interface TemporalProfile extends Fields<typeof PROFILE_FIELDS> {
  /** The TLS options with the contents of all files, or undefined if no option of TLS is set. */
  readonly tls: Fields<typeof TLS_FIELDS> | undefined;
  readonly codec: Fields<typeof CODEC_FIELDS>;
  /** The gRPC headers by name. */
  readonly headers: Record<string, string>;
}

/** Reads the profile that the variables select, and overrides its fields with the variables. */
export function readTemporalProfile({ values, headers }: TemporalVariables): {
  profile: TemporalProfile;
  problems: Problem[];
} {
  const problems: Problem[] = [];
  const report = (field: string, text: string) => void problems.push({ field, text });
  const read = (table: unknown, fields: FieldTypes, path = '') =>
    readFields(table, fields, (name, text) => {
      report('temporal.toml', `${path}${name} ${text}`);
    });
  let raw: JsonObject = {};
  try {
    raw = loadProfile(values);
  } catch (error) {
    report('TEMPORAL_* and temporal.toml', firstLine(error));
  }
  for (const name of ['tls', 'codec', 'grpc_meta'])
    if (raw[name] !== undefined && !isRecord(raw[name]))
      report('temporal.toml', `${name} must be a table, such as [profile.default.${name}]`);
  const fields: Fields<typeof PROFILE_FIELDS> = read(raw, PROFILE_FIELDS);
  const keyProblem = values.TEMPORAL_API_KEY === undefined && apiKeyProblem(fields.api_key ?? 'none');
  if (keyProblem) report('temporal.toml', `api_key ${keyProblem}`);
  const tls = isRecord(raw.tls) ? readTls(read(raw.tls, TLS_FIELDS, 'tls.'), report) : undefined;
  const profileHeaders = readProfileHeaders(raw.grpc_meta, report);
  const given = Object.entries({ ...profileHeaders, ...headers }).filter(([, value]) => value !== '');
  const codec = read(raw.codec, CODEC_FIELDS, 'codec.');
  return { profile: { ...fields, tls, codec, headers: Object.fromEntries(given) }, problems };
}

type Report = (field: string, text: string) => void;

/** Returns the fields that have the correct type, without surrounding white space. */
function readFields(table: unknown, fields: FieldTypes, report: Report): Record<string, never> {
  const read: Record<string, unknown> = {};
  for (const [name, type] of Object.entries(fields)) {
    const value = isRecord(table) ? table[name] : undefined;
    if (value === undefined) continue;
    if (typeof value === type) read[name] = typeof value === 'string' ? value.trim() : value;
    else
      report(name, type === 'string' ? 'must be a text in quotes' : 'must be true or false, without quotes');
  }
  return read as Record<string, never>;
}

export const DEFAULT_ADDRESS = 'localhost:7233';

/** The options of a connection. A worker's connection and a client's connection accept the same options. */
export type ConnectionSettings = Pick<ConnectionOptions, 'apiKey' | 'tls' | 'metadata'> & {
  readonly address: string;
  readonly apiKey?: string;
};

/** Returns the options of a connection. An API key implies TLS, unless TLS is disabled. */
export function toConnectionOptions(profile: TemporalProfile): ConnectionSettings {
  const { address = DEFAULT_ADDRESS, api_key: apiKey, tls, headers: metadata } = profile;
  return {
    ...{ address, metadata },
    ...(apiKey !== undefined && { apiKey, tls: true }),
    ...(tls && { tls: !tls.disabled && toTlsOptions(tls) }),
  };
}

function toTlsOptions({
  server_name: serverNameOverride,
  server_ca_cert_data: ca,
  client_cert_data: crt,
  client_key_data: key,
}: NonNullable<TemporalProfile['tls']>) {
  return {
    ...(serverNameOverride !== undefined && { serverNameOverride }),
    ...(ca !== undefined && { serverRootCACertificate: Buffer.from(ca) }),
    ...(crt && key && { clientCertPair: { crt: Buffer.from(crt), key: Buffer.from(key) } }),
  };
}

/** The names of the three files of TLS in a profile and in variables. */
const TLS_FILES = [
  ['client_cert', 'TEMPORAL_TLS_CLIENT_CERT'],
  ['client_key', 'TEMPORAL_TLS_CLIENT_KEY'],
  ['server_ca_cert', 'TEMPORAL_TLS_SERVER_CA_CERT'],
] as const;

/**
 * Replaces the paths with the contents of the files. No problem shows a path, because an operator may have put a key into the variable
 * of its path.
 */
function readTls(tls: Fields<typeof TLS_FIELDS>, report: Report): Fields<typeof TLS_FIELDS> {
  if (tls.disabled) return { disabled: true };
  const given = Object.entries(tls).filter(([name]) => !name.endsWith('_path'));
  const read = Object.fromEntries(given) as Fields<typeof TLS_FIELDS>;
  for (const [name, variable] of TLS_FILES) {
    const file = tls[`${name}_path`];
    if (file === undefined) continue;
    if (tls[`${name}_data`] !== undefined) {
      report(`${variable}_PATH, ${variable}_DATA`, 'both are set; set only one of them');
      continue;
    }
    try {
      read[`${name}_data`] = readFileSync(file, 'utf8');
    } catch (error) {
      const code = isRecord(error) ? String(error.code) : 'an unknown error';
      report(
        `${variable}_PATH`,
        `can't be read: ${code}; set it to the path of a readable file in PEM format`,
      );
    }
  }
  const isSet = (name: 'client_cert' | 'client_key') =>
    (tls[`${name}_path`] ?? tls[`${name}_data`]) !== undefined;
  if (isSet('client_cert') !== isSet('client_key'))
    report(
      'TEMPORAL_TLS_CLIENT_CERT_*, TEMPORAL_TLS_CLIENT_KEY_*',
      'only one of the two is set; set both, because mutual TLS needs the certificate and its key',
    );
  if (read.disable_host_verification)
    report(
      'TEMPORAL_TLS_DISABLE_HOST_VERIFICATION',
      'is not supported, because the TypeScript SDK always verifies the host; set TEMPORAL_TLS_SERVER_CA_CERT_PATH to the ' +
        'authority of the certificate, and TEMPORAL_TLS_SERVER_NAME to the name in the certificate',
    );
  return read;
}

function readProfileHeaders(table: unknown, report: Report): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [key, value] of Object.entries(isRecord(table) ? table : {})) {
    const name = headerName(key);
    const text = typeof value === 'string' ? value.trim() : '';
    const problem = headerProblem(name, text);
    if (problem === undefined) headers[name] = text;
    else report('temporal.toml', `grpc_meta.${name} ${problem}`);
  }
  return headers;
}

/** Returns only the first line of a message. A TOML parser's next lines quote the file, which may contain a key. */
export function firstLine(error: unknown): string {
  return (String(error).split('\n', 1)[0] ?? '').replace(/^(\w*Error: )+/, '');
}
