import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parse } from 'smol-toml';
import { isRecord, type JsonObject } from '../contract/checks';

/** The variables that override a field of a profile. */
const PROFILE_FIELDS = {
  address: 'TEMPORAL_ADDRESS',
  namespace: 'TEMPORAL_NAMESPACE',
  api_key: 'TEMPORAL_API_KEY',
} as const;
const CODEC_FIELDS = { endpoint: 'TEMPORAL_CODEC_ENDPOINT', auth: 'TEMPORAL_CODEC_AUTH' } as const;
const TLS_FIELDS = {
  client_cert_path: 'TEMPORAL_TLS_CLIENT_CERT_PATH',
  client_cert_data: 'TEMPORAL_TLS_CLIENT_CERT_DATA',
  client_key_path: 'TEMPORAL_TLS_CLIENT_KEY_PATH',
  client_key_data: 'TEMPORAL_TLS_CLIENT_KEY_DATA',
  server_ca_cert_path: 'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  server_ca_cert_data: 'TEMPORAL_TLS_SERVER_CA_CERT_DATA',
  server_name: 'TEMPORAL_TLS_SERVER_NAME',
} as const;

type Values = Readonly<Partial<Record<string, string>>>;

/**
 * Returns the selected profile of `temporal.toml`, with the fields that the variables override. The fields are in the form of the file.
 *
 * The SDK's package `@temporalio/envconfig` is not used, because its meaning of `TEMPORAL_TLS` depends on its version: in 1.20,
 * `TEMPORAL_TLS=true` disables TLS. In addition, its public functions drop the fields `codec` and `tls.disable_host_verification`.
 *
 * @throws Error if the file can't be read, is not valid TOML, or lacks the profile that `TEMPORAL_PROFILE` names
 */
export function loadProfile(values: Values): JsonObject {
  const profile = readFile(values);
  const { TEMPORAL_TLS: tls, TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: unverified } = values;
  return {
    ...profile,
    ...readOverrides(values, PROFILE_FIELDS),
    ...overrideTable('tls', profile.tls, {
      ...readOverrides(values, TLS_FIELDS),
      ...(tls !== undefined && { disabled: tls !== 'true' }),
      ...(unverified !== undefined && { disable_host_verification: unverified === 'true' }),
    }),
    ...overrideTable('codec', profile.codec, readOverrides(values, CODEC_FIELDS)),
  };
}

function readOverrides(values: Values, fields: Readonly<Record<string, string>>): JsonObject {
  const named = Object.entries(fields).map(([field, variable]) => [field, values[variable]] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== undefined));
}

function overrideTable(name: string, table: unknown, overrides: JsonObject): JsonObject {
  if (Object.keys(overrides).length === 0) return {};
  return { [name]: { ...(isRecord(table) ? table : {}), ...overrides } };
}

function readFile(values: Values): JsonObject {
  const { TEMPORAL_PROFILE: name, TEMPORAL_CONFIG_FILE: file = defaultFile(values) } = values;
  const config = file === undefined ? {} : parse(readIfPresent(file));
  const { profile: profiles } = config;
  if (!isRecord(profiles) && Object.keys(config).length > 0)
    throw new Error('the file has no [profile.NAME] table; add one');
  const profile = isRecord(profiles) ? profiles[name ?? 'default'] : undefined;
  if (isRecord(profile)) return profile;
  if (name !== undefined)
    throw new Error(`the file has no table [profile.${name}]; correct TEMPORAL_PROFILE`);
  return {};
}

function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isRecord(error) && error.code === 'ENOENT') return '';
    throw error;
  }
}

/** Returns the path of the file that the Temporal CLI reads by default. */
function defaultFile({ APPDATA, HOME, XDG_CONFIG_HOME }: Values): string | undefined {
  const inHome = (...names: string[]) => HOME && path.join(HOME, ...names);
  const folders: Partial<Record<NodeJS.Platform, string | undefined>> = {
    win32: APPDATA,
    darwin: inHome('Library', 'Application Support'),
  };
  const platform = os.platform();
  const folder = platform in folders ? folders[platform] : (XDG_CONFIG_HOME ?? inHome('.config'));
  return folder && path.isAbsolute(folder) ? path.join(folder, 'temporalio', 'temporal.toml') : undefined;
}
